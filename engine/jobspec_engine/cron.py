"""Cron ticks as events, each sent once whatever the workers, their restarts and the clock do.

Each schedule of a job has a row that says up to where its ticks have been dealt with. It moves in
the transaction that sends them, so that a worker which dies loses none and repeats none. A tick's
event has an id made of job, schedule and time: a clock that is put back finds the event there, and
the tick starts nothing a second time as long as that is kept.

A tick may be a minute late. One that is later was missed: there was no worker, or its job was
paused.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import takewhile
from typing import TYPE_CHECKING

from jobspec import CompiledJob, CompiledJobs, CronTrigger, EventError
from jobspec_engine.batch import Prepared, exchange
from jobspec_engine.dispatch import digest, dispatch
from jobspec_engine.events import MAX_ID_BYTES, Event, encode_event
from jobspec_engine.upkeep_statements import CronKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jobspec_engine.calls import Calls
    from jobspec_engine.upkeep_statements import StandingRow, UpkeepStatements

log = logging.getLogger(__name__)

# The reference's name for the event that a tick is.
EVENT_NAME = "inngest/scheduled.timer"

ON_TIME = timedelta(minutes=1)
"""How late a tick may be and not count as missed."""

MOST_MISSED = 100
"""How many missed ticks of a schedule are made up for with `missed: all`, the latest ones."""

OLDEST_MISSED = timedelta(days=7)
"""How old a missed tick may be that is made up for with `missed: all`."""

# How far back ticks are looked for at first: where clocks change, which times match depends on
# where one begins to count (crons.jsonl), and a day later no more.
_FIRST_REACH = timedelta(days=2)

# How long the server lets a worker that froze hold schedules, which keeps the others from them.
_PATIENCE = "10s"


@dataclass(frozen=True, slots=True)
class _Cron:
    """A schedule of a job."""

    job: CompiledJob
    trigger: CronTrigger

    @property
    def text(self) -> str:
        return self.trigger.schedule.text

    @property
    def key(self) -> CronKey:
        return CronKey(self.job.id, digest(self.text))


class Crons:
    """The schedules of some jobs, and the ticks of theirs that are due."""

    def __init__(self, jobs: CompiledJobs, statements: UpkeepStatements) -> None:
        crons = (
            _Cron(job, trigger)
            for job in jobs.values()
            for trigger in job.triggers
            if isinstance(trigger, CronTrigger)
        )
        self._by_key = {cron.key: cron for cron in crons}
        self._statements = statements

    def __bool__(self) -> bool:
        """Tell whether any job has a schedule."""
        return bool(self._by_key)

    def watch(self) -> Calls[list[CronKey]]:
        """Return the schedules that have ticks to deal with. One that is new has none."""
        known = [(key.job_id, key.digest, cron.text) for key, cron in self._by_key.items()]
        standing: list[StandingRow] = yield self._statements.watch_crons(known)
        return [key for row in standing if self._is_due(key := CronKey(*row[:2]), row)]

    def tick(self, keys: Sequence[CronKey]) -> Calls[int]:
        """Send the ticks of schedules that are due, and return how many. For one transaction."""
        standing: list[StandingRow] = yield self._statements.take_crons(keys, _PATIENCE)
        batch: list[Prepared] = []
        ticked: list[tuple[str, bytes, datetime]] = []
        for row in standing:
            key = CronKey(*row[:2])
            ticks = _due(self._by_key[key], row.ticked_until, row.now)
            batch += _prepared(self._by_key[key], ticks)
            ticked.append((row.job_id, row.digest, ticks[-1] if ticks else row.now))
        if batch:
            yield from exchange(batch, self._statements)
        if ticked:
            yield self._statements.tick_crons(ticked)
        return len(batch)

    def _is_due(self, key: CronKey, row: StandingRow) -> bool:
        """Tell whether a schedule has a tick to deal with, or stands in the future."""
        following = self._by_key[key].trigger.schedule.next(row.ticked_until)
        return row.now < row.ticked_until or (following is not None and following <= row.now)


def _due(cron: _Cron, after: datetime, now: datetime) -> Sequence[datetime]:
    """Return the ticks in `(after, now]` that start the job, the earliest first."""
    missed = cron.trigger.missed
    oldest = {"skip": now - ON_TIME, "once": after, "all": now - OLDEST_MISSED}[missed]
    latest = _latest(cron.trigger, after, now, MOST_MISSED if missed == "all" else 1)
    due = [at for at in latest if at > oldest]
    if len(due) < len(latest):
        log.warning("job %s: ticks of `%s` since %s were missed", cron.job.id, cron.text, after)
    return due


def _latest(
    trigger: CronTrigger, after: datetime, until: datetime, most: int
) -> Sequence[datetime]:
    """Return the latest ticks in `(after, until]`, at most `most`, the earliest first.

    Looks back further and further: a schedule may have any number of them in a long time.
    """
    reach = _FIRST_REACH
    while True:
        start = max(after, until - reach)
        found = list(takewhile(lambda at: at <= until, trigger.schedule.upcoming(start)))
        if len(found) >= most or start == after:
            return found[-most:]
        reach *= 2


def _prepared(cron: _Cron, ticks: Iterable[datetime]) -> Iterator[Prepared]:
    """Yield ticks as events, without those that the job rejects."""
    for at in ticks:
        try:
            yield _prepare(cron, at)
        except EventError as error:
            log.error("job %s: the tick at %s was not sent: %s", cron.job.id, at, error)  # noqa: TRY400  it is told in full


def _prepare(cron: _Cron, at: datetime) -> Prepared:
    """Return a tick as an event for its job alone, put off by a part of the trigger's jitter."""
    data = {"cron": cron.text}
    ts = int(at.timestamp() * 1000)
    encoded = encode_event(Event(EVENT_NAME, data, _event_id(cron, at), ts))
    row = dispatch(encoded, data, cron.job)
    jitter = cron.trigger.jitter * random.random()  # noqa: S311  it spreads load, and hides nothing
    return Prepared(encoded, (row._replace(wait=(row.wait or timedelta(0)) + jitter),), {})


def _event_id(cron: _Cron, at: datetime) -> str:
    text = f"cron/{cron.job.id}/{cron.text}/{at.isoformat()}"
    if len(text.encode()) <= MAX_ID_BYTES:
        return text
    return f"cron/{sha256(text.encode()).hexdigest()}"
