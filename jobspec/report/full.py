"""What a person reads: the message, the line it is about, a caret under the fault, and help.

Columns are measured in terminal cells, so that a caret stands under wide characters and tabs. A
line that is long, as keys may be, is cut around the fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from jobspec.diagnostics import Diagnostic, Severity, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobspec.source import Source, Span

TAB = "    "
BEFORE, WIDTH = 60, 140  # code points shown before the fault, and in a whole line


@dataclass(frozen=True, slots=True)
class Paint:
    """The escape codes that colour a part of a report; all empty where nothing is coloured."""

    error: str = ""
    warning: str = ""
    frame: str = ""
    bold: str = ""
    reset: str = ""

    def severity(self, severity: Severity) -> str:
        """Return the code for an error or a warning."""
        return self.error if severity is Severity.ERROR else self.warning


PLAIN = Paint()
COLOURED = Paint("\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[1m", "\x1b[0m")


@dataclass(frozen=True, slots=True)
class _Mark:
    """A range to underline, by `^` or `-`, and what to write beside it."""

    source: Source
    span: Span
    sign: str
    label: str = ""

    @property
    def line(self) -> int:
        return self.source.position(self.span.start).line


def render(findings: Sequence[Diagnostic], files: Sequence[str], paint: Paint = PLAIN) -> str:  # noqa: ARG001  one signature for all formats
    """Return the findings with their lines of source, an empty line after each."""
    return "".join(f"{_finding(found, paint)}\n" for found in findings)


def _finding(found: Diagnostic, paint: Paint) -> str:
    marks = [_Mark(found.source, found.span, "^")]
    marks += [_Mark(other.source, other.span, "-", other.message) for other in found.related]
    gutter = max(len(str(mark.line)) for mark in marks)
    colour = paint.severity(found.severity)
    title = f"{colour}{found.severity.value}[{found.code}]{paint.reset}{paint.bold}"
    lines = [f"{title}: {found.message}{paint.reset}"]
    for index, (source, group) in enumerate(groupby(marks, key=lambda mark: mark.source)):
        arrow = "-->" if index == 0 else ":::"
        lines += _excerpt(source, tuple(group), gutter, arrow, colour, paint)
    if found.help is not None:
        lines.append(f"{' ' * gutter} {paint.frame}={paint.reset} help: {found.help}")
    return "\n".join(lines) + "\n"


def _excerpt(
    source: Source, marks: tuple[_Mark, ...], gutter: int, arrow: str, colour: str, paint: Paint
) -> Iterator[str]:
    """Yield the place, the marked lines, and the marks under them."""
    frame, reset, margin = paint.frame, paint.reset, " " * gutter
    yield f"{margin}{frame}{arrow}{reset} {place_of(source, marks[0].span)}"
    if not source.text:
        return
    yield f"{margin} {frame}|{reset}"
    for mark in marks:
        shown, indent, under = _underlined(mark)
        yield f"{frame}{mark.line:<{gutter}} |{reset} {shown}".rstrip()
        sign = colour if mark.sign == "^" else frame
        label = f" {mark.label}" if mark.label else ""
        yield f"{margin} {frame}|{reset} {' ' * indent}{sign}{mark.sign * under}{label}{reset}"


def _underlined(mark: _Mark) -> tuple[str, int, int]:
    """Return the line as shown, and in cells where its mark begins and how long it is."""
    text = mark.source.line(mark.line)
    start = mark.source.position(mark.span.start).column - 1
    end = min(start + mark.span.end - mark.span.start, len(text))
    left, right = _window(len(text), start)
    ahead, marked, behind = text[left:start], text[start : min(end, right)], text[end:right]
    cut_left, cut_right = "…" * (left > 0), "…" * (right < len(text))
    ahead, marked = _visible(cut_left + ahead), _visible(marked)
    shown = ahead + marked + _visible(behind) + cut_right
    return shown, cells(ahead), max(cells(marked), 1)


def _window(length: int, start: int) -> tuple[int, int]:
    """Return which part of a line to show around a fault, all of it where it is short."""
    if length <= WIDTH:
        return 0, length
    left = max(0, min(start - BEFORE, length - WIDTH))
    return left, min(left + WIDTH, length)


def _visible(text: str) -> str:
    """Return the text with tabs widened and what a terminal would not print written as escapes."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(char: str) -> str:
    if char == "\t":
        return TAB
    return char if char.isprintable() else f"\\u{{{ord(char):x}}}"


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415  most lines are ASCII and need no tables

    return cell_len(text)
