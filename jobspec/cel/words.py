"""Types and arguments as a person names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.phrases import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobspec.cel.types import Type

_ONE = {
    "bool": "a boolean",
    "int": "an int",
    "uint": "a uint",
    "double": "a double",
    "string": "a string",
    "bytes": "bytes",
    "null_type": "null",
    "google.protobuf.Timestamp": "a timestamp",
    "google.protobuf.Duration": "a duration",
    "list": "a list",
    "map": "a map",
    "type": "the name of a type",
}
_MANY = {
    "bool": "booleans",
    "int": "ints",
    "uint": "uints",
    "double": "doubles",
    "string": "strings",
    "list": "lists",
    "map": "maps",
}


def a_value(of: Type) -> str:
    """Return a type with its article: `a list of strings`."""
    if of.name == "list" and of.of[0].name in _MANY:
        return f"a list of {_MANY[of.of[0].name]}"
    return _ONE.get(of.name, "any value")


def a_container(of: Type) -> str:
    """Return a type with what is looked for in it: `a map with strings as keys`."""
    if of.name == "map" and of.of[0].name in _MANY:
        return f"a map with {_MANY[of.of[0].name]} as keys"
    return a_value(of)


def operands(types: Sequence[Type]) -> str:
    """Return what an operator stands between, as far as it is known: `a string and an int`."""
    known = [one for one in types if one.is_known]
    if len(known) > 1 and known[0] == known[1] and known[0].name in _MANY:
        return f"two {_MANY[known[0].name]}"
    return joined([a_value(one) for one in known])


def counted(numbers: Sequence[int]) -> str:
    """Return how many arguments are taken: `no argument`, `1 argument`, `2 or 3 arguments`."""
    several = joined([str(number) for number in numbers], "or")
    if several == "0":
        return "no argument"
    return f"{several} argument" if several == "1" else f"{several} arguments"
