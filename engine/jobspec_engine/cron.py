"""Cron ticks as events: each has an id of its own, so that many workers send it once.

A tick while no worker runs is skipped, as in the reference.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from jobspec import CompiledJob, CompiledJobs, CronTrigger
from jobspec_engine.batch import Prepared
from jobspec_engine.dispatch import dispatch
from jobspec_engine.events import MAX_ID_BYTES, Event, encode_event

if TYPE_CHECKING:
    from collections.abc import Iterator

# The reference's name for the event that a tick is.
EVENT_NAME = "inngest/scheduled.timer"

# A worker that was frozen longer than this sends the last tick of this time only.
_LOOK_BACK = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Tick:
    """A moment at which a cron trigger starts its job."""

    job: CompiledJob
    trigger: CronTrigger
    at: datetime


def has_cron(jobs: CompiledJobs) -> bool:
    """Tell whether any job has a cron trigger."""
    return any(isinstance(t, CronTrigger) for job in jobs.values() for t in job.triggers)


def ticks_between(jobs: CompiledJobs, after: datetime, until: datetime) -> Iterator[Tick]:
    """Yield the latest tick of each cron trigger in `(after, until]`, where there is one."""
    after = max(after, until - _LOOK_BACK)
    for job in jobs.values():
        for trigger in job.triggers:
            if isinstance(trigger, CronTrigger):
                at = _latest(trigger, after, until)
                if at is not None:
                    yield Tick(job, trigger, at)


def prepare_tick(tick: Tick) -> Prepared:
    """Return a tick as an event for its job alone, put off by a part of the trigger's jitter."""
    cron = str(tick.trigger.schedule)
    data = {"cron": cron}
    ts = int(tick.at.timestamp() * 1000)
    encoded = encode_event(Event(EVENT_NAME, data, _event_id(tick.job.id, cron, tick.at), ts))
    row = dispatch(encoded, data, tick.job)
    jitter = tick.trigger.jitter * random.random()  # noqa: S311  it spreads load, and hides nothing
    return Prepared(encoded, (row._replace(wait=(row.wait or timedelta(0)) + jitter),))


def _latest(trigger: CronTrigger, after: datetime, until: datetime) -> datetime | None:
    latest = None
    at = trigger.schedule.next(after)
    while at is not None and at <= until:
        latest, at = at, trigger.schedule.next(at)
    return latest


def _event_id(job_id: str, cron: str, at: datetime) -> str:
    text = f"cron/{job_id}/{cron}/{at.isoformat()}"
    if len(text.encode()) <= MAX_ID_BYTES:
        return text
    return f"cron/{sha256(text.encode()).hexdigest()}"
