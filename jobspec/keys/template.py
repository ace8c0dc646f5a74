"""The key template: the front door of keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

from jobspec.diagnostics import Diagnostic, told
from jobspec.keys.resolve import Event, Resolve, compile_terms
from jobspec.keys.syntax import NotATemplate, parse, processes_escapes
from jobspec.keys.terms import Field, Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class KeyTemplateError(ValueError):
    """A text that is not a key template. `diagnostics` holds everything found, in text order.

    Their source is the text itself, named `<key>`; `Diagnostic.moved` takes them to the file.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(told(self.diagnostics))


@dataclass(frozen=True)
class KeyTemplate:
    """The text of a key, parsed: `event.data.<path>` and quoted literals, joined by `+`.

    Two templates are equal when their terms mean the same, one by one, however they are written.
    """

    text: str = field(compare=False)
    terms: tuple[Term, ...] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> KeyTemplate:
        """Return the template that `text` is.

        Raises:
            KeyTemplateError: where it is not one, with a diagnostic for each thing wrong.
            TypeError: for what is not a text.

        """
        _refuse_what_is_no_text(text)
        try:
            return cls(text, parse(text))
        except NotATemplate:
            from jobspec.keys.refusals import refusals  # noqa: PLC0415 - most keys are fine

            raise KeyTemplateError(refusals(text)) from None

    @cached_property
    def resolve(self) -> Resolve:
        """The function from an event, any mapping with `data`, to its `Key`.

        It raises `EventError` where a value that the key reads is not JSON. It is compiled when
        first asked for, since a check parses many templates and resolves none.
        """
        return compile_terms(self.terms)

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The paths of the fields below `event.data`, each once, in the order they are written."""
        return tuple(dict.fromkeys(term.path for term in self.terms if isinstance(term, Field)))

    def missing(self, event: Event) -> tuple[tuple[str, ...], ...]:
        """Return the paths of the template that lead to nothing in an event, or to null.

        It looks no further into the event than the paths go, and raises nothing.
        """
        return tuple(path for path in self.paths if _value_at(event, path) is None)

    def __str__(self) -> str:
        """Return the template in its plainest form, which parses to an equal one."""
        return " + ".join(map(self._printed, self.terms))

    def _printed(self, term: Term) -> str:
        if processes_escapes(self.text):
            return str(term)
        # `vars .x` and `vars.x` are the same path, but the second has escapes processed.
        return str(term).replace("vars.", "vars .")

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Pickle as the text: a compiled function can't be."""
        return KeyTemplate.parse, (self.text,)


def _refuse_what_is_no_text(found: object) -> None:
    if not isinstance(found, str):
        raise TypeError(f"a key template is a text, and this is of type {type(found).__name__}")


def _value_at(event: object, path: Iterable[str]) -> object:
    """Return what is at a path below `event.data`, as it is; None where nothing is."""
    value = event
    for name in ("data", *path):
        if not isinstance(value, Mapping):
            return None
        value = cast("Mapping[str, object]", value).get(name)
    return value
