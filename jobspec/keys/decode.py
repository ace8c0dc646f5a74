"""Values of an event as the reference has them once it decoded the event's JSON.

Numbers become float, every mapping a dict, every list or tuple a list; what JSON can't carry is an
error. Nothing here recurses: events nest as deep as they like, up to what Go's decoder takes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, Union

Json: TypeAlias = Union[str, float, bool, "list[Json]", "dict[str, Json]", None]

_Slots = Iterator[tuple[Any, str | int, "Place"]]

MAX_DEPTH = 10_000
"""How deep a value may nest: Go's `encoding/json` refuses more (and a value that holds itself)."""

has_surrogate = re.compile("[\ud800-\udfff]").search
"""Tell whether a text has a surrogate, half of a character."""


class EventError(ValueError):
    """An event that is not JSON in a place that a key reads. The message names the place."""


class Place:
    """Where in an event a value stands; told only when something is wrong with it."""

    __slots__ = ("parent", "step")

    def __init__(self, step: str, parent: Place | None = None) -> None:
        self.step = step
        self.parent = parent

    def __str__(self) -> str:
        steps: list[str] = []
        place: Place | None = self
        while place is not None:
            steps.append(place.step)
            place = place.parent
        return "".join(reversed(steps))


def decode(value: object, place: Place) -> Json:
    """Return a value of an event as the reference reads it.

    Raises:
        EventError: where `value`, or anything in it, has no form in JSON.

    """
    return _decode_nested(value, place) if _is_container(value) else _decode_leaf(value, place)


def decode_text(text: str) -> str:
    """Return a text as it comes out of JSON: a lone surrogate becomes U+FFFD, a pair one character.

    A subclass of str (an enum's member) is the text it holds.
    """
    if text.isascii() or not has_surrogate(text):
        return str.__str__(text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_leaf(value: object) -> bool:
    """Tell whether a value is JSON's and has no fields, so that a step into it is missing."""
    return value is None or isinstance(value, (str, int, float, list, tuple))


def not_json(value: object, place: Place) -> EventError:
    """Return the error for a value of a type that JSON, or the event as a whole, can't have."""
    expected = "which JSON has no form for" if place.parent else "but an event is a mapping"
    return EventError(f"{place} is of type {type(value).__name__}, {expected}")


def _is_container(value: object) -> bool:
    return isinstance(value, (list, tuple)) or _is_object(value)


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


def _decode_leaf(value: object, place: Place) -> Json:
    if isinstance(value, str):
        return decode_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return _decode_number(value, place)
    raise not_json(value, place)


def _decode_number(value: float, place: Place) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise EventError(f"{place} is a number too large for a float64") from None
    if not math.isfinite(number):
        raise EventError(f"{place} is {number}, which JSON has no form for")
    return number


def _decode_nested(value: object, place: Place) -> Json:
    """Copy depth first; `open_containers` is the way down, each with what it has left to decode."""
    root: list[Any] = [value]
    open_containers: list[_Slots] = [iter([(root, 0, place)])]
    while open_containers:
        slot = next(open_containers[-1], None)
        if slot is None:
            open_containers.pop()
        elif (below := _decode_slot(*slot)) is not None:
            open_containers.append(below)
        if len(open_containers) > MAX_DEPTH:
            raise EventError(f"{place} nests deeper than {MAX_DEPTH:,} levels")
    result: Json = root[0]
    return result


def _decode_slot(container: Any, slot: str | int, place: Place) -> _Slots | None:
    """Decode what is in a slot, or copy the container there and return its slots."""
    value: Any = container[slot]
    if not _is_container(value):
        container[slot] = _decode_leaf(value, place)
        return None
    if _is_object(value):
        fields = container[slot] = _fields(value, place)
        return ((fields, name, Place(f".{name}", place)) for name in fields)
    items: list[Any] = list(value)
    container[slot] = items
    return ((items, index, Place(f"[{index}]", place)) for index in range(len(items)))


def _fields(value: Mapping[Any, Any], place: Place) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, child in value.items():
        if not isinstance(name, str):
            raise EventError(f"{place} has a field name of type {type(name).__name__}, not a text")
        fields[decode_text(name)] = child  # the last of two equal names wins, as in Go
    return fields
