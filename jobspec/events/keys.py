"""Key templates, held to the types of the events they are resolved for.

What a key can become is followed term by term with kinds of values in place of values, by the
rules by which `jobspec.keys.resolve` adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from jobspec.events.ambiguity import ambiguities
from jobspec.events.faults import dead_end
from jobspec.events.lookup import DeadEnd, Found, kinds, look_up
from jobspec.events.shapes import (
    Array,
    Boolean,
    Null,
    Number,
    Object,
    Shape,
    String,
    Unknown,
)
from jobspec.keys.fault import Fault, quoted
from jobspec.keys.terms import Field, Term
from jobspec.phrases import joined
from jobspec.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobspec.keys import KeyTemplate

Kind = type[Shape] | None
"""What a value is: the class of its shape, or None where it is missing."""

_SUM_FAULTS: dict[type[Shape], tuple[str, str, str]] = {
    Number: (
        "JS208",
        "these numbers are added up, not joined",
        "now 1 and 5 give the key of 2 and 4",
    ),
    Boolean: ("JS212", "two booleans can't be added", "without one the key is an error"),
    Object: ("JS212", "two objects can't be added", "without one the key is an error"),
}


class Event(NamedTuple):
    """An event by its name, and what its data can be."""

    name: str
    data: Shape


@dataclass(frozen=True, slots=True)
class _Key:
    """A template with what each of its paths leads to."""

    terms: tuple[Term, ...]
    event: Event
    found: dict[tuple[str, ...], Found | DeadEnd]
    is_whole: bool

    def kinds_of(self, term: Term) -> frozenset[Kind]:
        """Return what a term can be."""
        if not isinstance(term, Field):
            return frozenset([String])
        found = self.found[term.path]
        if isinstance(found, DeadEnd):
            return frozenset([None])
        every = frozenset(type(one) for one in found.shapes)
        return every if self.is_whole or found.gap is None else every | {None}

    def fields(self) -> dict[tuple[str, ...], Field]:
        """Return the first term of each path."""
        fields = [term for term in self.terms if isinstance(term, Field)]
        return {term.path: term for term in reversed(fields)}


class _Clash(NamedTuple):
    """Values of one kind that `+` does not join: those of the terms from `first` to `last`."""

    first: int
    last: int
    kind: type[Shape]


def check_key(template: KeyTemplate, event: Event, *, is_whole: bool = False) -> tuple[Fault, ...]:
    """Return what is wrong with a key for an event, by the places of the template's text.

    `is_whole` where no event gets as far as the key that lacks a field or has null there
    (`on_missing: reject`).
    """
    found = {path: look_up(event.data, path) for path in template.paths}
    key = _Key(template.terms, event, found, is_whole)
    clashes = list(_clashes(key))
    clashing = {term.path for one in clashes for term in _parts(key, one)}
    faults = [_clash_fault(key, clash) for clash in clashes]
    for path, term in key.fields().items():
        faults += _field_faults(key, term, is_alone=path not in clashing)
    joints = {(clash.first, clash.last) for clash in clashes}
    faults += ambiguities(template.terms, found, joints, key.event.name)
    return tuple(sorted(faults, key=_place))


def _place(fault: Fault) -> tuple[Span, str]:
    return fault.span, fault.code


def _field_faults(key: _Key, term: Field, *, is_alone: bool) -> Iterator[Fault]:
    """Yield what is wrong with a field by itself; its type only where no sum is at fault for it."""
    found = key.found[term.path]
    if isinstance(found, DeadEnd):
        span = Span(term.span.start, term.steps[found.step].end)
        yield dead_end(term.path, found, key.event.name, span)
        return
    if not key.is_whole:
        yield from _gap_faults(key, term, found)
    is_stepped_into = any(path[:-1][: len(term.path)] == term.path for path in key.found)
    if is_alone and not is_stepped_into:
        yield from _type_faults(key, term, found)


def _gap_faults(key: _Key, term: Field, found: Found) -> Iterator[Fault]:
    """Yield that a field may be missing or null: one fault, even where both is so."""
    is_nullable = any(isinstance(one, Null) for one in found.shapes)
    rejecting = "or write `on_missing: reject` for the job"
    if found.gap is not None:
        since = ""
        if found.gap < len(term.path) - 1:
            since = f", since `{term.path[found.gap]}` is not always an object"
        or_null = " or null" if is_nullable else ""
        message = f"`{term}` may be missing{or_null} in event {quoted(key.event.name)}{since}"
        yield Fault("JS205", message, term.span, f"make it required in the schema, {rejecting}")
    elif is_nullable:
        message = f"`{term}` may be null in event {quoted(key.event.name)}"
        yield Fault("JS206", message, term.span, f"take null out of the schema, {rejecting}")


def _type_faults(key: _Key, term: Field, found: Found) -> Iterator[Fault]:
    """Yield that a field is not a text, or not only one."""
    shapes = [one for one in found.shapes if not isinstance(one, Null)]
    names = kinds(shapes)
    if not shapes or any(isinstance(one, Unknown) for one in shapes):
        return
    what = f"`{term}` of event {quoted(key.event.name)} is {joined(names, 'or')}"
    if len(names) > 1:
        advice = "values of two types can give one key, as `1` and `'1'` do: send one type"
        yield Fault("JS211", what, term.span, advice)
    elif isinstance(shapes[0], Number):
        if not all(isinstance(one, Number) and one.is_plain for one in shapes):
            advice = "send it as a text: 1000000 becomes `1e+06`, and beyond 2^53 numbers collide"
            yield Fault("JS207", what, term.span, advice)
    elif isinstance(shapes[0], Boolean):
        advice = "send a text that says what is meant: a key that is `false` alone is no key"
        yield Fault("JS209", what, term.span, advice)
    elif not isinstance(shapes[0], String):
        instead = "name a text in it" if isinstance(shapes[0], Object) else "send a text instead"
        advice = f"{instead}: different values of this kind can give the same key"
        yield Fault("JS210", what, term.span, advice)


def _clashes(key: _Key) -> Iterator[_Clash]:
    """Yield where two values meet that `+` adds up, or can't add, instead of joining them."""
    kinds_of = [key.kinds_of(term) for term in key.terms]
    total = kinds_of[0]
    for last in range(1, len(kinds_of)):
        both = [kind for kind in _SUM_FAULTS if kind in total and kind in kinds_of[last]]
        meeting = [(at, kind) for kind in both for at in range(last) if kind in kinds_of[at]]
        if meeting:  # it may not: a boolean is also what two missing fields add up to
            first, kind = max(meeting, key=itemgetter(0))
            yield _Clash(first, last, kind)
        total = frozenset(_sum(one, other) for one in total for other in kinds_of[last])


def _sum(one: Kind, other: Kind) -> Kind:
    """Return what the sum of two values is; nothing more is said of two that can't be added."""
    if one is None and other is None:
        return Boolean
    if one is None or other is None:
        return one or other
    if String not in (one, other) and (Unknown in (one, other) or one is other):
        return one if one is other and one in (Number, Array) else Unknown
    return String


def _parts(key: _Key, clash: _Clash) -> list[Field]:
    """Return the fields that a clash is about."""
    terms = key.terms[: clash.last + 1]
    return [one for one in terms if isinstance(one, Field) and clash.kind in key.kinds_of(one)]


def _clash_fault(key: _Key, clash: _Clash) -> Fault:
    code, message, why = _SUM_FAULTS[clash.kind]
    span = Span(key.terms[clash.first].span.start, key.terms[clash.last].span.end)
    return Fault(code, message, span, f"put a separator between them, such as `'/'`: {why}")
