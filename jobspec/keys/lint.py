"""The traps of key templates that are plain from their text, whatever the events hold.

The reference takes all of these; each makes keys that are not what they look like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jobspec.keys.fault import Fault, quoted
from jobspec.keys.syntax import processes_escapes
from jobspec.keys.terms import Field, Literal
from jobspec.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobspec.keys.template import KeyTemplate
    from jobspec.keys.terms import Term

MOST_FAST_TERMS = 10  # the reference takes 25 ms for 11, and 2.2 times that for each one more
MOST_TERMS = 15  # 16 take it more than a second; 30, for ever


def lint(template: KeyTemplate, option: str) -> tuple[Fault, ...]:
    """Return the traps in a template that is the key of an option, such as `debounce`.

    A concurrency key may be constant: that is how jobs share one limit.
    """
    faults = [*_backslashes(template), *_variables(template), *_own_fields(template)]
    if not template.paths and option != "concurrency":
        faults.append(_constant(template, option))
    if len(template.terms) > MOST_FAST_TERMS:
        faults.append(_too_long(template))
    return tuple(faults)


def _constant(template: KeyTemplate, option: str) -> Fault:
    span = _whole(template)
    advice = "name a field of the event, such as `event.data.id`"
    if option == "idempotency":
        message = "this key is the same for every event, so the job runs once and never again"
        return Fault("JS432", message, span, advice)
    message = f"this key is the same for every event, so `{option}` works as if it had none"
    return Fault("JS431", message, span, f"{advice}, or leave the key out")


def _backslashes(template: KeyTemplate) -> Iterator[Fault]:
    for term in template.terms:
        if isinstance(term, Literal) and "\\" in term.raw and not processes_escapes(template.text):
            message = f"the backslash in {quoted(str(term))} becomes a part of the key"
            advice = "leave it out: the reference takes what stands between quotes as it is"
            yield Fault("JS433", message, term.span, advice)


def _variables(template: KeyTemplate) -> Iterator[Fault]:
    at = template.text.find("vars.")
    if at >= 0:
        message = "`vars.` in a key turns on the escapes in all of its texts"
        advice = "write `vars .`, with a blank, which is the same field and leaves them off"
        yield Fault("JS434", message, Span(at, at + len("vars.")), advice)


def _own_fields(template: KeyTemplate) -> Iterator[Fault]:
    """Yield fields that stand beside a field of their own: without that, neither is known."""
    first: dict[tuple[str, ...], Field] = {}
    for term in template.terms:
        if isinstance(term, Field):
            first.setdefault(term.path, term)
    for path, term in first.items():
        outer = next((path[:end] for end in range(1, len(path)) if path[:end] in first), None)
        if outer is not None:
            message = f"`{term}` stands beside `{'.'.join(('event.data', *outer))}`, which it is in"
            advice = "keep one of them: the key has both or, where one is missing, neither"
            yield Fault("JS435", message, term.span, advice)


def _too_long(template: KeyTemplate) -> Fault:
    count = len(template.terms)
    advice = f"keep at most {MOST_FAST_TERMS}, or send the key as one field of the data"
    span = Span(template.terms[MOST_FAST_TERMS].span.start, template.terms[-1].span.end)
    if count > MOST_TERMS:
        message = f"the reference takes seconds or never ends to evaluate a key of {count} terms"
        return Fault("JS437", message, span, advice)
    message = f"the reference takes many milliseconds to evaluate a key of {count} terms"
    return Fault("JS436", message, span, advice)


def _whole(template: KeyTemplate) -> Span:
    return Span(template.terms[0].span.start, template.terms[-1].span.end)


class Joint(NamedTuple):
    """Two fields that follow each other, by number, and what stands between them."""

    first: int
    last: int
    literals: tuple[Literal, ...]

    @property
    def text(self) -> str:
        """What separates the fields in a key; empty where nothing does."""
        return "".join(literal.text for literal in self.literals)


def joints(terms: Sequence[Term]) -> Iterator[Joint]:
    """Yield the joints of a key, in order."""
    first: int | None = None
    between: list[Literal] = []
    for number, term in enumerate(terms):
        if isinstance(term, Literal):
            between.append(term)
            continue
        if first is not None:
            yield Joint(first, number, tuple(between))
        first, between = number, []


def unseparated(template: KeyTemplate) -> tuple[Fault, ...]:
    """Return where two fields of a key touch, as far as can be told without their types."""
    terms = template.terms
    return tuple(no_separator(terms, joint) for joint in joints(terms) if not joint.text)


def no_separator(terms: Sequence[Term], joint: Joint) -> Fault:
    """Tell of two fields that touch."""
    one, other = terms[joint.first], terms[joint.last]
    message = f"nothing separates `{one}` from `{other}`"
    advice = "put a separator between them, such as `'/'`: `ab` and `c` add up to `a` and `bc`"
    return Fault("JS430", message, Span(one.span.start, other.span.end), advice)
