"""Where each character of a scalar stands in its file.

A scalar's text differs from what is written: quotes and indentation go, escapes are decoded,
lines are folded. Each function here walks the written text as YAML reads it and yields one span
for each character of the value, in order, so the two line up by counting. The rules are those of
YAML 1.2 as libyaml applies them. Work is done only when somebody asks, since most values never
appear in a message.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal

from jobspec.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

Style = Literal["plain", "single", "double", "literal", "folded", "json"]

_BREAK = re.compile(r"\r\n|\r|\n")
_GAP = re.compile(r"[ \t\r\n]*")
_SPACES = re.compile(r" *")
_LINE = re.compile(r"[^\r\n]*")
_ESCAPE_WIDTHS = {"x": 4, "u": 6, "U": 10}
_SURROGATE_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


@lru_cache(maxsize=1)  # a long key may have hundreds of findings, one after another
def character_spans(text: str, span: Span, style: Style, value: str) -> tuple[Span, ...]:
    """Return the span in `text` of every character of `value`, and an empty one for its end.

    `span` is where the scalar stands, quotes and block indicators included.
    """
    if style in ("literal", "folded"):
        written = _block(text, span.start, value, folded=style == "folded")
    else:
        quote = 0 if style == "plain" else 1
        span = Span(span.start + quote, span.end - quote)
        written = _flow(text, span.start, span.end, style)
    spans = list(islice(written, len(value)))
    end = spans[-1].end if spans else span.start
    # A walk that ends early would be a fault of ours; the message still needs a place.
    return (*spans, *[Span(end, end)] * (len(value) + 1 - len(spans)))


def _flow(text: str, at: int, end: int, style: Style) -> Iterator[Span]:
    """Yield the spans of a plain or quoted scalar, which may fold over several lines."""
    while at < end:
        escaped_break = style == "double" and text[at] == "\\" and text[at + 1] in "\r\n"
        if escaped_break or text[at] in " \t\r\n":
            gap = _gap(text, at + escaped_break, end)
            yield from _gap_characters(text, gap, escaped=escaped_break)
            at = gap.end
        else:
            width = _width(text, at, style)
            yield Span(at, at + width)
            at += width


def _gap(text: str, at: int, end: int) -> Span:
    matched = _GAP.match(text, at, end)
    return Span(at, matched.end() if matched else at)


def _gap_characters(text: str, gap: Span, *, escaped: bool) -> list[Span]:
    """Return the characters that white space between words gives.

    On one line each is kept. One line break gives a space, or nothing where it is escaped; of
    several, the first is dropped. Blanks around line breaks go.
    """
    breaks = [Span(*found.span()) for found in _BREAK.finditer(text, gap.start, gap.end)]
    if not breaks:
        return [Span(i, i + 1) for i in range(gap.start, gap.end)]
    return breaks[1:] or ([] if escaped else breaks)


def _width(text: str, at: int, style: Style) -> int:
    """Return how many characters of the file write the one that starts at `at`."""
    if style == "single" and text[at] == "'":
        return 2
    if text[at] != "\\" or style not in ("double", "json"):
        return 1
    if style == "json" and _SURROGATE_PAIR.match(text, at):
        return 12
    return _ESCAPE_WIDTHS.get(text[at + 1], 2)


def _block(text: str, start: int, value: str, *, folded: bool) -> Iterator[Span]:
    """Yield the spans of a block scalar: those of `value` first, then those that chomping cut."""
    # A line gives a character at least, or is the first of a run of breaks that was folded.
    lines = list(islice(_lines(text, start), 2 * len(value) + 2))
    indent = _indentation(text, lines, value)
    pending: list[Span] = []  # line breaks since the last line that had content
    after_blank = True  # nothing is folded into a line that starts with a blank
    for line in lines:
        content = Span(min(line.start + indent, line.end), line.end)
        if content.start < content.end:
            if _leading(text, line) < indent:
                break  # the block ended on the line before
            starts_blank = text[content.start] in " \t"
            yield from _folded(pending, keep=not folded or after_blank or starts_blank)
            yield from (Span(i, i + 1) for i in range(content.start, content.end))
            pending, after_blank = [], starts_blank
        pending.append(_break_at(text, line.end))
    yield from pending


def _folded(breaks: list[Span], *, keep: bool) -> list[Span]:
    """Return the characters that the line breaks before a line of a block scalar give."""
    return breaks if keep else breaks[1:] or breaks


def _lines(text: str, start: int) -> Iterator[Span]:
    """Yield the lines below the one of `start`, without their breaks."""
    at = _end_of_line(text, start)
    while at < len(text):
        begin = _break_at(text, at).end
        at = _end_of_line(text, begin)
        yield Span(begin, at)


def _end_of_line(text: str, at: int) -> int:
    matched = _LINE.match(text, at)
    return matched.end() if matched else at


def _break_at(text: str, at: int) -> Span:
    matched = _BREAK.match(text, at)
    return Span(at, matched.end() if matched else at)


def _indentation(text: str, lines: list[Span], value: str) -> int:
    """Return by how much a block scalar is indented: what its first non-empty line lost.

    Worked out from the value, because an indentation indicator counts from the parent node,
    which a scalar does not know. Nothing is folded before that line, so lines pair up.
    """
    for line, kept in zip(lines, value.split("\n"), strict=False):
        if kept:
            return _leading(text, line) - (len(kept) - len(kept.lstrip(" ")))
    return max((_leading(text, line) for line in lines), default=0)


def _leading(text: str, line: Span) -> int:
    matched = _SPACES.match(text, line.start, line.end)
    return matched.end() - line.start if matched else 0
