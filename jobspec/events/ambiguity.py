"""Whether different events can give the same key, since nothing tells where one field ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.events.lookup import DeadEnd, Found
from jobspec.events.patterns import can_contain
from jobspec.events.shapes import UNKNOWN, Boolean, Null, Number, Shape, String
from jobspec.keys.fault import Fault, quoted
from jobspec.keys.lint import joints, no_separator
from jobspec.keys.terms import Field, Term
from jobspec.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from jobspec.keys.lint import Joint

_IN_NUMBERS = frozenset("0123456789.e+-")


def ambiguities(
    terms: Sequence[Term],
    found: Mapping[tuple[str, ...], Found | DeadEnd],
    known: Set[tuple[int, int]],
    event: str,
) -> Iterator[Fault]:
    """Yield the joints of a key that do not tell its fields apart, without those in `known`.

    One field that can contain the separator does no harm while all after it can't.
    """
    shapes = {term.path: _shapes(found[term.path]) for term in terms if isinstance(term, Field)}
    fields = [term for term in terms if isinstance(term, Field)]
    for number, joint in enumerate(joints(terms)):
        before, *after = (shapes[field.path] for field in fields[number:])
        if not joint.text:
            if not (_is_fixed(before) or _is_fixed(after[0]) or (joint.first, joint.last) in known):
                yield no_separator(terms, joint)
        elif _contains(before, joint.text) and any(
            _contains(one, joint.text) is not False for one in after
        ):
            yield _weak_separator(joint, fields[number], event)


def _shapes(found: Found | DeadEnd) -> tuple[Shape, ...]:
    return (UNKNOWN,) if isinstance(found, DeadEnd) else found.shapes


def _is_fixed(shapes: Sequence[Shape]) -> bool:
    """Tell whether a field always has the same length, so that it is plain where it ends."""
    return len(shapes) == 1 and isinstance(shapes[0], String) and shapes[0].has_fixed_length


def _contains(shapes: Sequence[Shape], text: str) -> bool | None:
    """Tell whether a field can contain a text, as far as the schema says."""
    answers = [_shape_contains(shape, text) for shape in shapes]
    if any(answers):
        return True
    return False if all(answer is False for answer in answers) else None


def _shape_contains(shape: Shape, text: str) -> bool | None:
    match shape:
        case String(values=values) if values is not None:
            return any(text in value for value in values)
        case String(is_uuid=True):
            return False  # it may, but it is always equally long
        case String(pattern=pattern) if pattern is not None:
            return can_contain(pattern, text)
        case Number():
            return None if _IN_NUMBERS.issuperset(text) else False
        case Boolean():
            return None if text in "true" or text in "false" else False
        case Null():
            return None if text in "NULL_VALUE" else False
        case _:
            return None


def _weak_separator(joint: Joint, field: Field, event: str) -> Fault:
    message = f"`{field}` of event {quoted(event)} can contain the separator {quoted(joint.text)}"
    span = Span(joint.literals[0].span.start, joint.literals[-1].span.end)
    return Fault("JS213", message, span, "choose a separator that the field can't contain")
