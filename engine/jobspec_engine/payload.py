"""Values to JSON text that Postgres keeps, and a word about what can't become any."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, TypeGuard

# How many levels of objects and arrays may lie in one another. More could be written than read: a
# reader's recursion limit is not its sender's, and Postgres has one too.
_MAX_DEPTH = 500

# What JSON calls an object, what most are first: to ask an abstract class takes long.
_OBJECTS = (dict, Mapping)

_ARRAYS = (list, tuple)

# Texts are found to be passed over; of a number with a fraction or an exponent nothing is too long.
_TEXT_OR_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|-?([0-9]+)(?![0-9.eE])')

_SCALARS = frozenset({str, int, float, bool, type(None)})

# How much JSON text of one value is kept: what is larger would hold up the records of other runs.
MAX_BYTES = 16 << 20


class UnreadableError(ValueError):
    """A text is JSON to Postgres, which keeps it, and more than Python reads."""


def parse(text: str) -> Any:
    """Return the value of JSON text.

    Raises `json.JSONDecodeError` with the place, for a number that has more digits than Python
    reads, too, and `RecursionError` for thousands of levels.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # all that Python says of a number, not where it is
        raise _too_many_digits(text) from None


def _too_many_digits(text: str) -> json.JSONDecodeError:
    most = sys.get_int_max_str_digits()
    numbers = (found for found in _TEXT_OR_NUMBER.finditer(text) if found[1])
    number = next(found for found in numbers if len(found[1]) > most)
    what = f"a number has {len(number[1]):,} digits, and {most:,} can be read"
    return json.JSONDecodeError(what, text, number.start())


def decode(text: str) -> Any:
    """Return the value of JSON text that Postgres kept.

    Raises `UnreadableError` for thousands of levels, or a number of thousands of digits: plain SQL
    may have added them.
    """
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"its data can't be read: {error}") from None


def is_object(value: object) -> TypeGuard[Mapping[object, object]]:
    """Tell whether a value is what JSON calls an object."""
    return isinstance(value, _OBJECTS)


def is_array(value: object) -> TypeGuard[Sequence[object]]:
    """Tell whether a value is what JSON calls an array."""
    return isinstance(value, _ARRAYS)


def _as_dict(value: object) -> dict[object, object]:
    if is_object(value):
        return dict(value)
    raise TypeError(f"a value of type {type(value).__name__} is not JSON")


_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=_as_dict).encode


def encode(value: object, name: str, error: type[ValueError]) -> str:
    """Return `value` as JSON text in ASCII, in which U+0000 and lone surrogates are escapes.

    Raises `error`, with the place of the fault below `name`, for what is not JSON (keys that are
    not text, nan and infinities, cycles, other types), for more than 500 levels and for more than
    16 MiB of text.
    """
    if value is None:  # what most handlers return
        return "null"
    try:
        text = _encode(value)
    except (TypeError, ValueError):
        raise error(_fault(value, name)) from None
    except RecursionError:
        raise error(_too_deep(name)) from None
    if text.count("{") + text.count("[") > _MAX_DEPTH and _depth(value) > _MAX_DEPTH:
        raise error(_too_deep(name))
    if not _all_keys_are_text(value):
        raise error(_fault(value, name))
    if len(text) > MAX_BYTES:
        raise error(
            f"{name} has {len(text):,} bytes as JSON, and {MAX_BYTES:,} can be kept:"
            " keep it elsewhere, and pass on where"
        )
    return text


def _too_deep(name: str) -> str:
    return f"{name} is nested too deeply: more than {_MAX_DEPTH} levels"


def _depth(value: object) -> int:
    """Return how many levels a value without cycles has."""
    depth, level = 0, [value]
    while level:
        arrays = [item for item in level if is_array(item)]
        objects = [item for item in level if is_object(item)]
        depth += bool(arrays or objects)
        level = list(chain(*arrays, *(item.values() for item in objects)))
    return depth


def _all_keys_are_text(value: object) -> bool:
    """Tell whether all keys in a value without cycles are; the encoder makes text of the others."""
    todo = [value]
    for item in todo:  # and what it adds to them
        if is_array(item):
            todo += [inner for inner in item if type(inner) not in _SCALARS]
        elif is_object(item):
            for key, inner in item.items():
                if not isinstance(key, str):
                    return False
                if type(inner) not in _SCALARS:
                    todo.append(inner)
    return True


def _is_too_long(number: int) -> bool:
    try:
        str(number)
    except ValueError:
        return True
    return False


def _fault(value: object, name: str) -> str:
    """Say what in `value` is not JSON, and where. Only called when something is."""
    todo: list[tuple[str, object, tuple[int, ...]]] = [(name, value, ())]
    while todo:
        path, item, parents = todo.pop()
        if id(item) in parents:
            return f"{path} contains itself"
        inner = (*parents, id(item))
        if is_object(item):
            for key, child in item.items():
                if not isinstance(key, str):
                    return f"{path} has a key that is not text but {type(key).__name__}"
                todo.append((f"{path}.{key}", child, inner))
        elif is_array(item):
            todo.extend((f"{path}[{i}]", child, inner) for i, child in enumerate(item))
        elif isinstance(item, float) and (item != item or item in (float("inf"), float("-inf"))):
            return f"{path} is {item}, which is not JSON"
        elif isinstance(item, int) and _is_too_long(item):
            most = sys.get_int_max_str_digits()
            return f"{path} is a number of more digits than the {most:,} that can be written"
        elif not isinstance(item, str | int | float | bool | None):
            return f"{path} is of type {type(item).__name__}, which is not JSON"
    return f"{name} is not JSON"
