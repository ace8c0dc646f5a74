"""Text of a decoded value as Go's `%v` writes it, which is how the reference writes keys."""

from __future__ import annotations

import math
from typing import Final, cast


class Special:
    """A value that no event holds; it prints as `shown`."""

    __slots__ = ("shown",)

    def __init__(self, shown: str) -> None:
        self.shown = shown

    def __repr__(self) -> str:
        return f"<{self.shown}>"


LISTED_NULL: Final = Special("NULL_VALUE")
"""A null of an array that was joined to another; one of an array left alone prints `<nil>`."""


def go_text(value: object) -> str:
    """Return Go's `%v` of a decoded value (`Json`, or a `Special`), but `NULL_VALUE` for a null.

    Object keys are in the order of their bytes, which for UTF-8 is that of their code points.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return LISTED_NULL.shown
    return _nested_text(value)


def number_text(number: float) -> str:
    """Return Go's `%v` of a float64: `1.5`, `-0`, `1e+06` (a power from 1e+06 up and below 1e-04).

    Python's repr has the same shortest digits, but turns to powers only from 1e+16 up.
    """
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    digits = repr(number).removesuffix(".0")
    if "e" in digits or abs(number) < 1e6:
        return digits
    sign = "-" if number < 0 else ""
    whole, _, fraction = digits.removeprefix("-").partition(".")
    first, rest = whole[0], (whole[1:] + fraction).rstrip("0")
    return f"{sign}{first}{'.' if rest else ''}{rest}e+{len(whole) - 1:02d}"


def _nested_text(value: object) -> str:
    """Print from a list of what is left: texts go out as they are, so brackets wait there too."""
    parts: list[str] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, list):
            todo += _array_parts(cast("list[object]", item))
        elif isinstance(item, dict):
            todo += _object_parts(cast("dict[str, object]", item))
        else:
            parts.append(_leaf_text(item))
    return "".join(parts)


def _leaf_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Special):
        return value.shown
    return "<nil>"


def _array_parts(items: list[object]) -> list[object]:
    """Return what an array prints as, last part first."""
    parts: list[object] = ["]"]
    for item in reversed(items):
        parts += (item, " ")
    parts[-1 if items else len(parts) :] = ["["]
    return parts


def _object_parts(fields: dict[str, object]) -> list[object]:
    """Return what an object prints as, last part first."""
    parts: list[object] = ["]"]
    for name in sorted(fields, reverse=True):
        parts += (fields[name], f"{name}:", " ")
    parts[-1 if fields else len(parts) :] = ["map["]
    return parts
