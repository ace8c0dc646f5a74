"""The tree of located values that a file is read into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobspec.load.places import Style, character_spans
from jobspec.source import Source, Span

if TYPE_CHECKING:
    from jobspec.diagnostics import Diagnostic

ScalarValue = None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One value: a text, a number, a boolean or null. `span` covers quotes, too."""

    value: ScalarValue
    source: Source
    span: Span
    style: Style = "plain"

    def plain(self) -> ScalarValue:
        """Return the Python value."""
        return self.value

    def locate(self, span: Span) -> Span:
        """Return where a person edits a range of the text: offsets in `value` to those in the file.

        Escapes, quotes, folded lines and indentation are seen through. An empty range gives an
        empty one, at the place where text would be inserted. A value that is not a text, and a
        range outside of it, give the whole of the node.
        """
        text = self.value
        if not isinstance(text, str) or not 0 <= span.start <= span.end <= len(text):
            return self.span
        places = character_spans(self.source.text, self.span, self.style, text)
        start = places[span.start].start
        return Span(start, places[span.end - 1].end if span.end > span.start else start)


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """A list of values."""

    items: tuple[Node, ...]
    source: Source
    span: Span

    def plain(self) -> list[object]:
        """Return the Python list."""
        return [item.plain() for item in self.items]


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping and its value. The key's `value` is a text."""

    key: ScalarNode
    value: Node

    @property
    def name(self) -> str:
        """The text of the key."""
        return str(self.key.value)


@dataclass(frozen=True, slots=True)
class MappingNode:
    """Values by name, in the order they were written; no name comes twice."""

    entries: tuple[Entry, ...]
    source: Source
    span: Span

    def get(self, name: str) -> Node | None:
        """Return the value of a name, or None where there is no such entry."""
        return next((entry.value for entry in self.entries if entry.key.value == name), None)

    def plain(self) -> dict[str, object]:
        """Return the Python dict."""
        return {entry.name: entry.value.plain() for entry in self.entries}


Node = ScalarNode | SequenceNode | MappingNode


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one text holds: its tree, or None where none could be made, and what is wrong."""

    node: Node | None
    source: Source
    diagnostics: tuple[Diagnostic, ...] = ()
