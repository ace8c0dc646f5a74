"""The terms of a key template, with their places in its text.

Terms compare by what they mean: `'a'` equals `"a"`, wherever they stand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobspec.source import Span


@dataclass(frozen=True, slots=True)
class Field:
    """A value of the event: `event.data.a.b` has the path `("a", "b")`.

    `span` covers the whole of it, `steps` each name of the path.
    """

    path: tuple[str, ...]
    span: Span = field(compare=False)
    steps: tuple[Span, ...] = field(compare=False)

    def __str__(self) -> str:
        return ".".join(("event.data", *self.path))


@dataclass(frozen=True, slots=True)
class Literal:
    """A fixed text. `text` is what it adds to a key, `raw` what stands between its quotes.

    The two differ only where the template has its escapes processed (`processes_escapes`).
    """

    text: str
    raw: str = field(compare=False)
    quote: str = field(compare=False)
    span: Span = field(compare=False)

    def __str__(self) -> str:
        return f"{self.quote}{self.raw}{self.quote}"


Term = Field | Literal
