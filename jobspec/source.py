"""Texts and places in them: offsets in, lines and columns out.

A place is kept as a half-open range of code points, which is what parsers and slices speak.
Lines and columns are worked out only when somebody reads a message.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Span(NamedTuple):
    """A half-open range `[start, end)` of code points in a source."""

    start: int
    end: int

    def shifted(self, by: int) -> Span:
        """Return the same range, `by` code points further on."""
        return Span(self.start + by, self.end + by)


class Position(NamedTuple):
    """A place as people count it: line and column, both from 1, in code points."""

    line: int
    column: int


class Place(NamedTuple):
    """A range where a person can look it up: a file, and in it two positions, without the end."""

    file: str
    start: Position
    end: Position


@dataclass(frozen=True)
class Source:
    """A named text. `name` is how the person who reads a message knows it, such as a path.

    `is_made` where nobody wrote the text: it was made of a declaration in Python. Where that
    stands, its file and line, is `declared_at` if it is known, and also in `name`.

    `beside` reads a file that the text names, by its path from here, where the text is not one of
    the disk; it gives None where there is no such file.
    """

    name: str
    text: str = field(repr=False)
    is_made: bool = field(default=False, repr=False)
    declared_at: tuple[str, int] | None = field(default=None, repr=False)
    beside: Callable[[str], Source | None] | None = field(default=None, repr=False, compare=False)

    @property
    def file(self) -> str:
        """The file to look in, as far as there is one; else the name."""
        return self.name if self.declared_at is None else self.declared_at[0]

    def place(self, span: Span) -> Place:
        """Return where a range can be looked up: of a declaration, the line that it begins on."""
        if self.declared_at is not None:
            line = Position(self.declared_at[1], 1)
            return Place(self.file, line, line)
        return Place(self.file, self.position(span.start), self.position(span.end))

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        starts.extend(i + 1 for i, char in enumerate(self.text) if char == "\n")
        return starts

    def position(self, offset: int) -> Position:
        """Return the line and column of a code-point offset; past the end counts as the end."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """Return the text of a line, counted from 1, without its line break."""
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else None].removesuffix("\r")
