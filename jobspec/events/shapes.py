"""What a value of an event can be, as far as its schema says.

A shape never says more than the schema does: where that uses a rule that is not understood here,
the shape is `Unknown`, and nothing is found wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MOST_ALTERNATIVES = 64


@dataclass(frozen=True, slots=True)
class Unknown:
    """Any value, or one of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Null:
    """Null."""


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number. `is_plain` where a key has it digit by digit, as all whole ones below a million."""

    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class String:
    """A text: one of `values`, where those are known, that matches `pattern`, where there is one.

    `has_fixed_length` where all such texts are equally long, as UUIDs are.
    """

    values: frozenset[str] | None = None
    pattern: str | None = None
    is_uuid: bool = False
    has_fixed_length: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values, which no path leads into."""


@dataclass(frozen=True, slots=True)
class Property:
    """A field that an object declares."""

    shape: Shape
    is_required: bool


@dataclass(frozen=True, slots=True)
class Object:
    """Values by name. `rest` is what fields hold that are not declared, None where there are none.

    A schema allows undeclared fields unless it says no. Here it must say yes, since a name that is
    not declared is far more often a wrong one.
    """

    fields: Mapping[str, Property]
    rest: Shape | None = None


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any one of some shapes, none of which is a `OneOf` itself."""

    shapes: tuple[Shape, ...]


Shape = Unknown | Null | Boolean | Number | String | Array | Object | OneOf

UNKNOWN = Unknown()


def alternatives(shape: Shape) -> tuple[Shape, ...]:
    """Return what a value can be, one by one."""
    return shape.shapes if isinstance(shape, OneOf) else (shape,)


def union(shapes: Iterable[Shape]) -> Shape:
    """Return the shape of a value that has any of these; of none, nothing is known."""
    each: list[Shape] = []
    for shape in shapes:
        each += [one for one in alternatives(shape) if one not in each]
    if not each or len(each) > _MOST_ALTERNATIVES:
        return UNKNOWN
    return each[0] if len(each) == 1 else OneOf(tuple(each))


def intersection(shapes: Iterable[Shape]) -> Shape:
    """Return the shape of a value that has all of these. Of what can't be, nothing is known."""
    return reduce(_both, shapes, cast("Shape", UNKNOWN))


def _both(one: Shape, other: Shape) -> Shape:
    pairs = list(product(alternatives(one), alternatives(other)))
    if len(pairs) > _MOST_ALTERNATIVES:
        return UNKNOWN
    return union(both for pair in pairs if (both := _common(*pair)) is not None)


def _common(one: Shape, other: Shape) -> Shape | None:
    """Return what two shapes have in common, neither of them a `OneOf`; None for nothing."""
    match one, other:
        case (Unknown(), known) | (known, Unknown()):
            return known
        case Object(), Object():
            return _merged(one, other)
        case String(), String():
            return _narrowed(one, other)
        case Number(), Number():
            return Number(one.is_plain or other.is_plain)
        case _:
            return one if type(one) is type(other) else None


def _merged(one: Object, other: Object) -> Object:
    """Return an object with the fields of both: in one schema, `allOf` adds the parts up."""
    names = dict.fromkeys([*one.fields, *other.fields])
    fields = {name: _field(one.fields.get(name), other.fields.get(name)) for name in names}
    closed = one.rest is None or other.rest is None
    return Object(fields, None if closed else _both(one.rest or UNKNOWN, other.rest or UNKNOWN))


def _field(one: Property | None, other: Property | None) -> Property:
    shapes = [declared.shape for declared in (one, other) if declared is not None]
    required = any(declared.is_required for declared in (one, other) if declared is not None)
    return Property(intersection(shapes), required)


def _narrowed(one: String, other: String) -> String:
    if one.values is not None and other.values is not None:
        one = replace(one, values=one.values & other.values)
    return String(
        other.values if one.values is None else one.values,
        one.pattern or other.pattern,
        one.is_uuid or other.is_uuid,
        one.has_fixed_length or other.has_fixed_length,
    )


def without_details(shape: Shape) -> Shape:
    """Return a shape of which only the names of fields are known, but not what they hold."""
    shapes = alternatives(shape)
    names = {name for one in shapes if isinstance(one, Object) for name in one.fields}
    closed = all(isinstance(one, Object) and one.rest is None for one in shapes)
    if not closed:
        return UNKNOWN
    return Object({name: Property(UNKNOWN, is_required=True) for name in names})
