"""Keys of jobs that cron schedules start: the event of a tick has one field, `event.data.cron`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.keys.fault import Fault
from jobspec.keys.terms import Field
from jobspec.load import MappingNode, SequenceNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobspec.keys import KeyTemplate
    from jobspec.load import Node

FIELDS_OF_A_TICK = (("cron",),)
_HAS = "the event of a tick has only `event.data.cron`, the text of the schedule"


def ticks_lack(key: KeyTemplate, triggers: Node | None) -> Iterator[Fault]:
    """Yield the fields of a key that the ticks of a job never have."""
    items = triggers.items if isinstance(triggers, SequenceNode) else ()
    ticks = [isinstance(one, MappingNode) and one.get("cron") is not None for one in items]
    if any(ticks):
        for term in key.terms:
            if isinstance(term, Field) and term.path not in FIELDS_OF_A_TICK:
                yield _never(term) if all(ticks) else _not_always(term)


def _never(field: Field) -> Fault:
    message = f"`{field}` is never there: only a cron schedule starts this job"
    return Fault("JS438", message, field.span, f"{_HAS}; leave the key out, or add an event")


def _not_always(field: Field) -> Fault:
    message = f"`{field}` is not there when the cron schedule of this job starts it"
    return Fault("JS439", message, field.span, f"{_HAS}; give the schedule a job of its own")
