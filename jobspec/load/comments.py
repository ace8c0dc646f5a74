"""Where the comments of a YAML text stand.

Parsers drop comments, so they are found again: a `#` at the start of a line or behind a blank,
outside of every scalar. Only texts that speak to us in comments pay for that.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from yaml.error import YAMLError
from yaml.events import ScalarEvent

from jobspec.load.yaml_events import events
from jobspec.load.yaml_reader import content_span
from jobspec.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = "jobspec:"
_COMMENT = re.compile(r"(?:(?<=[ \t\r\n])|\A)#[^\r\n]*")
_BLOCK_HEADER = re.compile(r"[|>][^\r\n]*")


class Comment(NamedTuple):
    """One comment, `#` included, and the number of its line, from 1."""

    line: int
    span: Span
    text: str


def comments(source: Source) -> tuple[Comment, ...]:
    """Return the comments of a YAML text in order: none where it never says `jobspec:`.

    Of a text that is not valid YAML, those above the fault are exact; below it, every `#` behind
    a blank counts. JSON has no comments.
    """
    if MARKER not in source.text or source.name.lower().endswith(".json"):
        return ()
    return tuple(
        Comment(source.position(span.start).line, span, source.text[slice(*span)])
        for span in _comment_spans(source.text)
    )


def scalar_lines(source: Source) -> tuple[range, ...]:
    """Return the lines of each value that is written over several, in order.

    No comment can stand in one, so a comment beside it, or above it, is about all of them. The
    first line is that of the `|` or `>` of a block.
    """
    spans = [Span(*span) for span in _scalar_spans(source.text, headers=True)]
    lines = [
        range(source.position(start).line, source.position(max(start, end - 1)).line + 1)
        for start, end in spans
    ]
    return tuple(one for one in lines if len(one) > 1)


def _comment_spans(text: str) -> Iterator[Span]:
    scalars = list(_scalar_spans(text))
    starts = [scalar.start for scalar in scalars]
    at = 0
    while (found := _COMMENT.search(text, at)) is not None:
        before = bisect_right(starts, found.start()) - 1
        if before >= 0 and found.start() < scalars[before].end:
            at = scalars[before].end
        else:
            yield Span(*found.span())
            at = found.end()


def _scalar_spans(text: str, *, headers: bool = False) -> Iterator[Span]:
    """Yield what scalars cover, in order.

    The line of a block's `|` may end in a comment, so it is left out, but for `headers`.
    """
    with suppress(YAMLError):
        for event in events(text):
            if isinstance(event, ScalarEvent):
                span = content_span(text, event)
                header = (
                    _BLOCK_HEADER.match(text, span.start)
                    if event.style in ("|", ">") and not headers
                    else None
                )
                yield Span(header.end() if header else span.start, span.end)
