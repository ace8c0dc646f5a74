"""A path through the data of an event: what is at its end, and whether anything is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jobspec.events.shapes import (
    UNKNOWN,
    Array,
    Boolean,
    Null,
    Number,
    Object,
    Shape,
    String,
    Unknown,
    alternatives,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES: dict[type[Shape], str] = {
    Null: "null",
    Boolean: "a boolean",
    Number: "a number",
    String: "a text",
    Array: "an array",
    Object: "an object",
    Unknown: "any value",
}


@dataclass(frozen=True, slots=True)
class Found:
    """What can be at the end of a path. `gap` is the first step that can be missing, if one can."""

    shapes: tuple[Shape, ...]
    gap: int | None = None


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """Why nothing is ever at the end of a path: its `step`, and what that steps into.

    `known` has the names that would lead on; it is empty where there is no object to step into.
    """

    step: int
    kind: Literal["undeclared", "no object"]
    known: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = ()


def look_up(data: Shape, path: Sequence[str]) -> Found | DeadEnd:
    """Return what is at the end of a path below `event.data`, which is an object."""
    shapes: list[Shape] = [one for one in alternatives(data) if isinstance(one, Object | Unknown)]
    gap: int | None = None
    for step, name in enumerate(path):
        objects = [one for one in shapes if isinstance(one, Object)]
        if not objects and UNKNOWN not in shapes:
            return DeadEnd(step, "no object", shapes=tuple(shapes))
        found, is_certain = _fields(objects, name)
        if UNKNOWN in shapes:
            found.append(UNKNOWN)
        if not found:
            known = dict.fromkeys(known for one in objects for known in one.fields)
            return DeadEnd(step, "undeclared", tuple(known))
        if gap is None and not is_certain:
            gap = step
        elif gap is None and any(not isinstance(one, Object | Unknown) for one in shapes):
            gap = step - 1
        shapes = found
    return Found(tuple(shapes), gap)


def _fields(objects: Sequence[Object], name: str) -> tuple[list[Shape], bool]:
    """Return what a field can be in some objects, and whether it is there in all of them."""
    found: list[Shape] = []
    is_certain = True
    for one in objects:
        declared = one.fields.get(name)
        shape = one.rest if declared is None else declared.shape
        if shape is not None:
            found += [each for each in alternatives(shape) if each not in found]
        is_certain = is_certain and declared is not None and declared.is_required
    return found, is_certain


def kinds(shapes: Sequence[Shape]) -> tuple[str, ...]:
    """Return what shapes are, in words, each kind once: `a text`, `a number`."""
    return tuple(dict.fromkeys(_NAMES[type(one)] for one in shapes))
