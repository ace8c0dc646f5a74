"""The rows that statements take and return, each a type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from uuid import UUID


CancelOutcome = Literal["cancelled", "requested", "ended", "unknown"]


class SentRow(NamedTuple):
    """What became of one dispatch."""

    position: int
    outcome: Any
    run_id: int
    allotted_run_id: int
    run_at: datetime
    # Whether there are workers, which may sleep.
    watched: bool = False


class SentNewRow(NamedTuple):
    """What became of dispatches without keys of new events: each made a run, due at once.

    Nothing was written where a step `awaited` one of the events.
    """

    awaited: bool
    # Whether there are workers, which may sleep.
    watched: bool
    run_at: datetime
    run_ids: list[int]


class SentPlainRow(NamedTuple):
    """What became of dispatches without keys: those at `positions` made a run each, due at once.

    Nothing was written where a step `awaited` one of the events.
    """

    awaited: bool
    watched: bool
    run_at: datetime
    positions: list[int]
    run_ids: list[int]

    def rows(self) -> list[SentRow]:
        """Return a row for each dispatch that made a run."""
        return [
            SentRow(position, "enqueued", run_id, run_id, self.run_at, self.watched)
            for position, run_id in zip(self.positions, self.run_ids, strict=True)
        ]


class SentKeyedRow(NamedTuple):
    """What became of dispatches with keys of one kind, those at `positions`.

    Each has the run that stands for it, which is the allotted one or one that was there before.
    Nothing was written where a step `awaited` one of the events.
    """

    awaited: bool
    watched: bool
    joined: Any
    positions: list[int]
    run_ids: list[int]
    allotted_run_ids: list[int]
    runs_at: list[datetime]

    def rows(self) -> list[SentRow]:
        """Return a row for each dispatch of an event that is new."""
        return [
            SentRow(
                position,
                "enqueued" if run_id == allotted_run_id else self.joined,
                run_id,
                allotted_run_id,
                run_at,
                self.watched,
            )
            for position, run_id, allotted_run_id, run_at in zip(
                self.positions, self.run_ids, self.allotted_run_ids, self.runs_at, strict=True
            )
        ]


class KnownRow(NamedTuple):
    """What became of an event that was sent before, for one job."""

    event_id: str
    job_id: str
    outcome: Any
    run_id: int
    run_at: datetime | None


class AddedRow(NamedTuple):
    """The run that a call of `add_job` made or joined."""

    outcome: Any
    run_id: int
    due: datetime


class Claimed(NamedTuple):
    """A run that this worker holds, with its event."""

    run_id: int
    job_id: str
    attempt: int
    max_attempts: int
    event_id: str
    event_name: str
    event_data: str
    event_ts: int
    # How long it was due before its first claim, which this is; None: it was claimed before.
    waited: timedelta | None
    # How long ago its first claim was.
    ran: timedelta
    # Which pass of its attempt begins, counted from 1.
    passes: int
    # The trace in which its event was sent: JSON text.
    trace: str | None = None


class Held(NamedTuple):
    """What fences every write of a worker."""

    run_id: int
    lease_token: UUID

    def __hash__(self) -> int:
        """Tell runs apart: to hash a UUID takes longer than all else that is done with a lease."""
        return self.run_id


class Suspension(NamedTuple):
    """The end of a pass that waits: until `wake_at`, or until the run has lasted for `finish`.

    With neither the run is ready at once. Where the handler was not `entered` there was no pass.
    """

    run_id: int
    lease_token: UUID
    wake_at: datetime | None = None
    finish: timedelta | None = None
    entered: bool = True


class Completion(NamedTuple):
    """The end of a run with success; `result` is JSON text."""

    run_id: int
    lease_token: UUID
    result: str


class Renewed(NamedTuple):
    """A lease that is held: whether its run was asked to end, and whether it was extended.

    It was not where somebody else held the row locked.
    """

    run_id: int
    lease_token: UUID
    cancel_requested: bool
    extended: bool


class Failure(NamedTuple):
    """The end of an attempt without success: a row of `fail.sql`'s input, in its order.

    The run is retried after `delay` or at `retry_at`, and with neither it ends for `reason`; it may
    last for `finish`. `error` and `traceback` are texts as JSON.
    """

    run_id: int
    lease_token: UUID
    delay: timedelta | None
    reason: str
    message: str
    error: str
    traceback: str = "null"
    retry_at: datetime | None = None
    finish: timedelta | None = None


# How a pass ended.
Ended = Completion | Failure | Suspension


class Reclaimed(NamedTuple):
    """A run whose lease ran out, and the state it is in now."""

    run_id: int
    state: str


class Cancelled(NamedTuple):
    """What became of a run that was asked to end.

    | outcome | what happened |
    |---|---|
    | `cancelled` | it was waiting, and has ended |
    | `requested` | it is running; its worker ends it as soon as it hears of that |
    | `ended` | it had ended before |
    | `unknown` | there is no such run |
    """

    run_id: int
    outcome: CancelOutcome


class DeadRun(NamedTuple):
    """A run that somebody wants to replay, with its event."""

    run_id: int
    job_id: str
    state: str
    max_attempts: int
    replayed_as: int | None
    event_name: str
    event_data: str
    event_ts: int


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Which dead letters: of a job, of a reason, that died since a time or within a period."""

    job_id: str | None = None
    reason: str | None = None
    since: datetime | None = None
    within: timedelta | None = None


class RunRow(NamedTuple):
    """A run as people look at it; `last_failure` is of one that goes on.

    `attempt` counts the attempts that were used up or are under way in a worker. One that waits for
    a step was given back, which its `passes` tell: how often its handler was entered in it.
    `result` is JSON text; a rehearsal puts the value in its place.
    """

    run_id: int
    job_id: str
    state: str
    attempt: int
    max_attempts: int
    events: int
    event_id: str
    enqueued_at: datetime
    run_at: datetime
    finished_at: datetime | None
    result: Any
    reason: str | None
    message: str | None
    last_failure: dict[str, Any] | None
    passes: int


class DeadLetterRow(NamedTuple):
    """A run that ended without success, as people look at it; `event_data` is JSON text."""

    run_id: int
    job_id: str
    reason: str
    message: str
    died_at: datetime
    attempt: int
    replayed_as: int | None
    event_id: str
    event_name: str
    event_data: str
    history: list[dict[str, Any]]


class WholeRun(NamedTuple):
    """All that is known of a run; `event_data` and `result` are JSON text.

    `steps` are the memos that were written last, the latest at the end, without their results.
    """

    run_id: int
    job_id: str
    state: str
    attempt: int
    max_attempts: int
    refunds: int
    priority: int
    events: int
    event_id: str | None
    event_name: str | None
    event_data: str | None
    idempotency_key: str | None
    debounce_key: str | None
    enqueued_at: datetime
    run_at: datetime
    first_claimed_at: datetime | None
    claimed_at: datetime | None
    claimed_by: str | None
    cancel_requested_at: datetime | None
    finished_at: datetime | None
    result: str | None
    reason: str | None
    message: str | None
    replayed_as: int | None
    steps: list[dict[str, Any]]
    history: list[dict[str, Any]]
