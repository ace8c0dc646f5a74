"""Where the comments of a declaration in Python stand.

They are those in the statement that declares the job, such as a decorator over several lines, and
those alone on the lines above it.
"""

from __future__ import annotations

import linecache
import tokenize
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING

from jobspec.load.comments import Comment
from jobspec.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def declaration_comments(declared_at: tuple[str, int]) -> tuple[Source, tuple[Comment, ...]]:
    """Return the Python file of a declaration, and the comments on it, by their lines.

    `declared_at` is that file and the line that the declaration begins on. A program may have been
    delivered without its sources; it has no comments then.
    """
    file, line = declared_at
    linecache.checkcache(file)  # it may have been edited since another check of this process
    lines = linecache.getlines(file)
    source = Source(file, "".join(lines))
    above = sum(1 for _ in takewhile(_is_comment, reversed(lines[: line - 1])))
    first = line - above
    places = [*_alone(lines, first, line), *_within(lines, line)]
    return source, tuple(_comment(lines, *place) for place in places)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _alone(lines: Sequence[str], first: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield the line, column and text of the comments that whole lines are."""
    for number in range(first, end):
        text = lines[number - 1].strip()
        yield number, lines[number - 1].index("#"), text


def _within(lines: Sequence[str], line: int) -> Iterator[tuple[int, int, str]]:
    """Yield the line, column and text of the comments in the statement that begins on a line."""
    # what begins in the middle of a statement is no text of its own
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(iter(lines[line - 1 :]).__next__):
            if token.type == tokenize.COMMENT:
                yield line - 1 + token.start[0], token.start[1], token.string
            elif token.type == tokenize.NEWLINE:
                return


def _comment(lines: Sequence[str], line: int, column: int, text: str) -> Comment:
    start = sum(map(len, lines[: line - 1])) + column
    return Comment(line, Span(start, start + len(text)), text)
