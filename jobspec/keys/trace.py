"""A key, explained: what each term of a template adds to it for one event.

Built on the very functions that resolve a key, so that an explanation can't disagree with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobspec.keys.goformat import Special, go_text
from jobspec.keys.resolve import MISSING, Event, Key, key_of, lookups_of, values_of
from jobspec.keys.terms import Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobspec.keys.decode import Json
    from jobspec.keys.template import KeyTemplate
    from jobspec.keys.terms import Term

_TYPES: dict[type, str] = {
    str: "text",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True, slots=True)
class TracedTerm:
    """One term of a template, and what it adds to a key.

    `type` is `missing` where the event has no such value. `rendered` is what of the key comes from
    this term alone, None where it was added to the one before as a value and not as text. `so_far`
    is the key that this term and those before it would be.
    """

    term: Term
    type: str
    value: Json
    rendered: str | None
    how: str
    so_far: Key


@dataclass(frozen=True, slots=True)
class Trace:
    """A key, and how it came to be, term by term."""

    key: Key
    terms: tuple[TracedTerm, ...]


def trace(template: KeyTemplate, event: Event) -> Trace:
    """Return how a template resolves for an event; the key is that of `template.resolve(event)`.

    Raises `EventError` where a value that the key reads is not JSON.
    """
    values = values_of(template.terms, lookups_of(template.paths), event)
    terms = tuple(
        TracedTerm(term, _type(value), _json(value), rendered, how, key_of(values[: number + 1]))
        for number, (term, value, (rendered, how)) in enumerate(
            zip(template.terms, values, _renderings(template.terms, values), strict=True)
        )
    )
    return Trace(key_of(values), terms)


def _type(value: Json | Special) -> str:
    if value is MISSING:
        return "missing"
    return "null" if value is None else _TYPES[type(value)]


def _json(value: Json | Special) -> Json:
    return None if isinstance(value, Special) else value


def _renderings(
    terms: Sequence[Term], values: Sequence[Json | Special]
) -> Iterator[tuple[str | None, str]]:
    """Yield what each term adds to the text, and in words how."""
    combined = _combined(values)
    for number, (term, value) in enumerate(zip(terms, values, strict=True)):
        if value is MISSING:
            yield _missing(number, values)
        elif number in combined:
            yield None, combined[number]
        else:
            yield go_text(value), _written(term, value)


def _missing(number: int, values: Sequence[Json | Special]) -> tuple[str | None, str]:
    first = values[:2]
    if number == len(first) - 1 and all(value is MISSING for value in first):
        return "false", "nothing is known so far, which makes `false`"
    return "", "missing, so it is skipped"


def _combined(values: Sequence[Json | Special]) -> dict[int, str]:
    """Return which terms are added as values, and how: the first ones, where they are of one type.

    Texts are left out, since they are joined as they are.
    """
    known = [number for number, value in enumerate(values) if value is not MISSING]
    if all(value is MISSING for value in values[:2]):
        return _false_and(known, values)
    first = values[known[0]]
    alike: list[int] = []
    for number in known:
        if type(values[number]) is not type(first):
            break
        alike.append(number)
    if len(alike) < 2 or isinstance(first, str):
        return {}
    if isinstance(first, float):
        return dict.fromkeys(alike, "a number added to the others beside it")
    if isinstance(first, list):
        return dict.fromkeys(alike, "an array joined to the others beside it")
    return dict.fromkeys(alike[:2], f"no two values of the type {_type(first)} can be added")


def _false_and(known: Sequence[int], values: Sequence[Json | Special]) -> dict[int, str]:
    """Return the same where the first two terms are missing, which makes them the boolean false."""
    if known and isinstance(values[known[0]], bool):
        return {known[0]: "a boolean can't be added to `false`"}
    return {}


def _written(term: Term, value: Json | Special) -> str:
    if isinstance(term, Literal):
        return "as it is written" if term.text == term.raw else "with its escapes processed"
    if isinstance(value, str):
        return "as it is"
    if isinstance(value, float) and abs(value) >= 2**53:
        return "a number so large that it was rounded: others give this text, too"
    return f"{_article(_type(value))}, as the reference writes it"


def _article(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind[0] in 'ao' else 'a'} {kind}"
