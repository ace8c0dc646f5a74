"""A fault of a key: what every room that looks at keys reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jobspec.diagnostics import printable

if TYPE_CHECKING:
    from jobspec.source import Span

SHOWN_LENGTH = 40


class Fault(NamedTuple):
    """One thing wrong. `message` says what; `advice` says what to write instead."""

    code: str
    message: str
    span: Span
    advice: str


def quoted(text: str) -> str:
    """Return a piece of a key as messages show it: on one line, not too long, printable."""
    shown = text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 3] + "..."
    return f"`{printable(shown)}`"
