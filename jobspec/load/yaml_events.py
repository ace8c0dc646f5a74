"""The stream of parse events of a YAML text, from libyaml where PyYAML was built with it.

Both parsers are state machines that yield events as they go, so a reader that stops at a limit
has cost no more than it read. The pure Python one is some fifty times slower and otherwise alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from yaml.error import MarkedYAMLError
from yaml.loader import BaseLoader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from yaml.error import Mark as TextMark
    from yaml.events import Event


class Mark(Protocol):
    """A place in the text; `index` counts code points."""

    index: int


class EventParser(Protocol):
    """What the two parsers have in common."""

    def get_event(self) -> Event | None:
        """Return the next event, or None at the end."""
        ...


class _UntypedParser(EventParser, Protocol):
    """What PyYAML's own parser has, which its stubs leave untyped."""

    def get_mark(self) -> TextMark:
        """Return the place that the parser has reached."""
        ...


class PythonParser:
    """PyYAML's own parser, for installations without libyaml."""

    def __init__(self, text: str) -> None:
        self._parser = cast("_UntypedParser", BaseLoader(text))

    def get_event(self) -> Event | None:
        """Return the next event, or None at the end.

        Raises:
            MarkedYAMLError: where the text is not YAML.

        """
        try:
            return self._parser.get_event()
        except (ValueError, OverflowError) as problem:  # an escape beyond U+10FFFF
            raise MarkedYAMLError(
                problem="found invalid Unicode character escape code",
                problem_mark=self._parser.get_mark(),
            ) from problem


def _fastest_parser() -> Callable[[str], EventParser]:
    try:
        from yaml._yaml import CParser  # noqa: PLC0415 - absent without libyaml
    except ImportError:
        return PythonParser
    return CParser


parser_of: Callable[[str], EventParser] = _fastest_parser()


def events(text: str) -> Iterator[Event]:
    """Yield the events of a text.

    Raises:
        MarkedYAMLError: where the text is not YAML.

    """
    parser = parser_of(text)
    while (event := parser.get_event()) is not None:
        yield event


def index_of(mark: object) -> int:
    """Return the offset of a mark of an event; parsers always set them, the stubs do not know."""
    return cast("Mark", mark).index
