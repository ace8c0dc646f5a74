"""The paths of conditions, held to what events have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.events.faults import dead_end, unknown_part
from jobspec.events.lookup import DeadEnd, look_up
from jobspec.source import Span

if TYPE_CHECKING:
    from jobspec.cel import Path
    from jobspec.events.keys import Event
    from jobspec.keys.fault import Fault

PARTS = ("id", "name", "data", "ts", "user", "v")
"""What an event consists of (conditions.jsonl)."""


def check_path(path: Path, events: tuple[Event, ...]) -> tuple[Fault, ...]:
    """Return what is wrong with a path that a condition reads from these events.

    Fields that may be missing or null are fine: to ask for them is what conditions are for.
    """
    if not path.steps:
        return ()
    first, *rest = path.steps
    if first.name not in PARTS:
        return (unknown_part(first.name, first.span, PARTS),)
    if first.name != "data":
        return ()
    names = [step.name for step in rest]
    found = [(event, look_up(event.data, names)) for event in events]
    return tuple(
        dead_end(names, end, event.name, Span(path.span.start, rest[end.step].span.end))
        for event, end in found
        if isinstance(end, DeadEnd)
    )
