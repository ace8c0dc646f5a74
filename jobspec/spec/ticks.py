"""Keys of jobs that cron schedules start: the event of a tick has one field, `event.data.cron`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.keys.fault import Fault
from jobspec.keys.terms import Field
from jobspec.load import MappingNode, SequenceNode
from jobspec.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobspec.keys import KeyTemplate
    from jobspec.load import Node

FIELDS_OF_A_TICK = (("cron",),)
_REPEATED = "`event.data.cron` is the text of the schedule"
_HAS = "the event of a tick has only `event.data.cron`, the text of the schedule"


def ticks_lack(key: KeyTemplate, triggers: Node | None) -> Iterator[Fault]:
    """Yield the fields of a key that the ticks of a job never have."""
    ticks = _ticks(triggers)
    if any(ticks):
        for term in key.terms:
            if isinstance(term, Field) and term.path not in FIELDS_OF_A_TICK:
                yield _never(term) if all(ticks) else _not_always(term)


def ticks_repeat(key: KeyTemplate, triggers: Node | None) -> Iterator[Fault]:
    """Yield that an idempotency key which counts for good is one text for each schedule of a job.

    Only where nothing but schedules starts the job, and the key reads what each tick of one has.
    """
    ticks = _ticks(triggers)
    if ticks and all(ticks) and key.paths and set(key.paths) <= set(FIELDS_OF_A_TICK):
        span = Span(key.terms[0].span.start, key.terms[-1].span.end)
        message = "every tick of a schedule has this same key, so it runs once and never again"
        advice = f"{_REPEATED}; give the key a `window`, such as `while-active`, or leave it out"
        yield Fault("JS416", message, span, advice)


def _ticks(triggers: Node | None) -> list[bool]:
    """Tell of each trigger whether it is a schedule."""
    items = triggers.items if isinstance(triggers, SequenceNode) else ()
    return [isinstance(one, MappingNode) and one.get("cron") is not None for one in items]


def _never(field: Field) -> Fault:
    message = f"`{field}` is never there: only a cron schedule starts this job"
    return Fault("JS438", message, field.span, f"{_HAS}; leave the key out, or add an event")


def _not_always(field: Field) -> Fault:
    message = f"`{field}` is not there when the cron schedule of this job starts it"
    return Fault("JS439", message, field.span, f"{_HAS}; give the schedule a job of its own")
