"""CEL's types, and when one fits where another is wanted: cel-go's rules, unification included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# A type that holds more types than this counts as unknown. Elements of elements, bound to names and
# put into maps again, can double it at every step, and the reference has no bound.
_MAX_SIZE = 200


@dataclass(frozen=True, slots=True)
class Type:
    """A type and what it holds. A variable, whose type is not known yet, has a name with `?`."""

    name: str
    of: tuple[Type, ...] = ()
    size: int = 1

    @property
    def is_variable(self) -> bool:
        """Whether this stands for a type that is found out later."""
        return self.name.startswith("?")

    @property
    def is_known(self) -> bool:
        """Whether anything can be said of a value of this type."""
        return self.name not in _UNKNOWN and not self.is_variable


BOOLEAN, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null_type")
TIMESTAMP, DURATION = Type("google.protobuf.Timestamp"), Type("google.protobuf.Duration")
DYN = Type("dyn")  # anything: what an event holds
ERROR = Type("error")  # what was already complained about

_UNKNOWN = frozenset({"dyn", "error"})
_NULLABLE = frozenset({NULL.name, TIMESTAMP.name, DURATION.name})


def _holding(name: str, *of: Type) -> Type:
    size = 1 + sum(one.size for one in of)
    return Type(name, of, size) if size <= _MAX_SIZE else DYN


def list_of(element: Type) -> Type:
    """Return the type of lists of `element`."""
    return _holding("list", element)


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps from `key` to `value`."""
    return _holding("map", key, value)


def type_of(instance: Type) -> Type:
    """Return the type of the name of a type, such as `string`."""
    return _holding("type", instance)


def most_general(one: Type, other: Type) -> Type:
    """Return the less specific of two types that fit each other."""
    return one if _as_general(one, other) else other


def _as_general(one: Type, other: Type) -> bool:
    if one.name == "dyn" or one.is_variable:
        return True
    if other.name == "dyn" or other.is_variable or one.name != other.name:
        return False
    return one.name == "type" or all(map(_as_general, one.of, other.of))


class Bindings:
    """What is known of the type variables of one expression."""

    def __init__(self) -> None:
        self._bound: dict[Type, Type] = {}
        self._undo: list[tuple[Type, Type | None]] = []
        self._made = 0

    def fresh(self) -> Type:
        """Return a new variable."""
        self._made += 1
        return Type(f"?{self._made}")

    def fits(self, given: Type, wanted: Type) -> bool:
        """Say whether `given` may stand where `wanted` does, and bind variables so that it does."""
        return self.all_fit([given], [wanted])

    def all_fit(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        """Say whether a list of types fits another, binding variables only if all of it does."""
        self._undo.clear()
        if self._pairs_fit(given, wanted):
            return True
        for variable, before in reversed(self._undo):
            if before is None:
                del self._bound[variable]
            else:
                self._bound[variable] = before
        return False

    def resolved(self, of: Type) -> Type:
        """Return the type with what is known put in for its variables."""
        bound = self._bound.get(of) if of.is_variable else None
        if bound is not None:
            return self.resolved(bound)
        return _holding(of.name, *map(self.resolved, of.of)) if of.of else of

    def _pairs_fit(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        return len(given) == len(wanted) and all(map(self._fits, given, wanted))

    def _fits(self, one: Type, other: Type) -> bool:
        if one is other:
            return True
        if other.is_variable:
            fitting, bound = self._binds(one, other)
            if fitting or bound:
                return fitting
        if one.is_variable:
            return self._binds(other, one)[0]
        if one.name in _UNKNOWN or other.name in _UNKNOWN:
            return True
        if NULL.name in (one.name, other.name):
            return one.name in _NULLABLE and other.name in _NULLABLE
        return one.name == other.name and (one.name == "type" or self._pairs_fit(one.of, other.of))

    def _binds(self, one: Type, variable: Type) -> tuple[bool, bool]:
        """Say whether a variable can be `one`, and whether it was bound already."""
        bound = self._bound.get(variable)
        if one in (variable, bound):
            return True, True
        if bound is None:
            free = not self._holds(one, variable)
            if free:
                self._bind(variable, one)
            return free, False
        if not self._fits(one, bound):
            return False, True
        general = most_general(one, bound)
        if not self._holds(general, variable):
            self._bind(variable, general)
        return True, True

    def _bind(self, variable: Type, to: Type) -> None:
        self._undo.append((variable, self._bound.get(variable)))
        self._bound[variable] = to

    def _holds(self, outer: Type, variable: Type) -> bool:
        """Say whether a variable occurs in a type, which could then not be written down."""
        if outer == variable:
            return True
        bound = self._bound.get(outer) if outer.is_variable else None
        inner = outer.of if bound is None else (bound,)
        return any(self._holds(one, variable) for one in inner)
