"""The statements of upkeep: cron ticks, the register of workers, pruning."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jobspec_engine.calls import Call, first
from jobspec_engine.dispatch import columns
from jobspec_engine.statements import Statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID


class CronKey(NamedTuple):
    """What a schedule of a job is known by."""

    job_id: str
    digest: bytes


class StandingRow(NamedTuple):
    """Up to where the ticks of a schedule have been dealt with, and the time it is."""

    job_id: str
    digest: bytes
    ticked_until: datetime
    now: datetime


class SeenRuns(NamedTuple):
    """The last run that was looked at, None where no older one can follow, and how many went."""

    last: int | None
    deleted: int


class SeenEvents(NamedTuple):
    """The last event that was looked at, None where there was none, and how many went."""

    since: datetime | None
    last: str | None
    deleted: int


class KnownJob(NamedTuple):
    """Whether a worker or a run is of a job, and the ids of jobs that there are."""

    is_known: bool
    there_are: list[str]


class UpkeepStatements(Statements):
    """The statements of upkeep, for the tables of one schema."""

    def watch_crons(self, crons: Iterable[tuple[str, bytes, str]]) -> Call[StandingRow]:
        """Tell where schedules (job id, digest, text) stand, and make known those that are new."""
        job_ids, digests, texts = columns(crons, 3)
        return self._call(
            "watch_crons", StandingRow._make, job_ids=job_ids, digests=digests, crons=texts
        )

    def take_crons(self, keys: Iterable[CronKey], patience: str) -> Call[StandingRow]:
        """Lock schedules to send their ticks; the server waits for the rest for `patience`."""
        job_ids, digests = columns(keys, 2)
        return self._call(
            "take_crons",
            lambda row: StandingRow._make(row[:4]),
            job_ids=job_ids,
            digests=digests,
            patience=patience,
        )

    def tick_crons(self, ticked: Iterable[tuple[str, bytes, datetime]]) -> Call[None]:
        """Let schedules (job id, digest) stand where their ticks have been dealt with."""
        job_ids, digests, until = columns(ticked, 3)
        return self._call(
            "tick_crons", lambda _: None, job_ids=job_ids, digests=digests, ticked_until=until
        )

    def see_worker(self, worker_id: UUID, name: str, job_ids: Sequence[str]) -> Call[None]:
        """Let everybody see that a worker is at work."""
        return self._call(
            "see_worker", lambda _: None, worker_id=worker_id, name=name, job_ids=list(job_ids)
        )

    def forget_worker(self, worker_id: UUID) -> Call[None]:
        """Forget a worker that has stopped."""
        return self._call("forget_worker", lambda _: None, worker_id=worker_id)

    def knows_job(self, job_id: str) -> Call[KnownJob]:
        """Tell whether a worker or a run is of a job, and which jobs there are."""
        return self._call("knows_job", KnownJob._make, job_id=job_id)

    def prune_dead_letters(self, age: timedelta, batch: int) -> Call[int]:
        """Delete old dead letters: how many."""
        return self._call("prune_dead_letters", first, age=age, batch=batch)

    def prune_runs(self, behind: int, age: timedelta, batch: int) -> Call[SeenRuns]:
        """Delete those of the next runs that ended long ago."""
        return self._call("prune_runs", SeenRuns._make, behind=behind, age=age, batch=batch)

    def prune_events(
        self, since: datetime | None, behind: str, age: timedelta, batch: int
    ) -> Call[SeenEvents]:
        """Delete those of the next events that are old and that nothing needs."""
        return self._call(
            "prune_events",
            SeenEvents._make,
            since="-infinity" if since is None else since,
            behind=behind,
            age=age,
            batch=batch,
        )

    def prune_keys(self, batch: int) -> Call[int]:
        """Delete idempotency keys that are free again: how many."""
        return self._call("prune_keys", first, batch=batch)
