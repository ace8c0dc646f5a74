"""Send again what ended without success: which runs, with which data, and how fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from jobspec import EventError
from jobspec_engine.add_job import EVENT_NAME
from jobspec_engine.arguments import require_known, unknown_job
from jobspec_engine.dispatch import Dispatch, digest, dispatch
from jobspec_engine.errors import ReplayError
from jobspec_engine.events import Encoded, Event, encode_event
from jobspec_engine.payload import UnreadableError, decode
from jobspec_engine.rows import DeadLetters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from jobspec import CompiledJobs
    from jobspec_engine.calls import Calls
    from jobspec_engine.rows import DeadRun, SentRow
    from jobspec_engine.statements import Statements

# How many runs one transaction replays.
_CHUNK = 500
_FASTEST = 1_000_000

REASONS = (
    "attempts-used",
    "not-retriable",
    "key-error",
    "crash-loop",
    "start-timeout",
    "finish-timeout",
    "step-drift",
)

ReplayOutcome = Literal["enqueued", "duplicate", "unresolved", "not-dead", "unknown"]
Edit = Callable[[Any], Mapping[str, object]]


def replaced_by(data: Mapping[str, object]) -> Edit:
    """Return the edit that sends `data` instead of a run's own."""

    def edit(_: object) -> Mapping[str, object]:
        return data

    return edit


class ReplayOptions(TypedDict, total=False):
    """How runs are replayed.

    `edit` is given the data of each run's event and returns what to send instead. `rate` is how
    many runs become due in a second. With `dry_run` nothing is sent, and what would be is told.
    """

    edit: Edit | None
    rate: float | None
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of a run that was to be replayed.

    | outcome | what happened | `replayed_as` |
    |---|---|---|
    | `enqueued` | it was sent again, due at `run_at` | the new run |
    | `duplicate` | it had been replayed before | the run of then |
    | `unresolved` | its data can't be read, or its keys not be resolved, as `reason` tells | |
    | `not-dead` | it did not end without success | |
    | `unknown` | there is no such run, or its job is not among the compiled jobs | |
    """

    run_id: int
    outcome: ReplayOutcome
    replayed_as: int | None = None
    run_at: datetime | None = None
    reason: str | None = None


class _Resent(NamedTuple):
    """A run as it is to be sent again."""

    run_id: int
    event: Encoded
    dispatch: Dispatch


class Replay:
    """One call to replay some runs: drive `runs` first, then `send` for each of the chunks.

    Raises `ReplayError` for a rate that is no rate.
    """

    def __init__(self, jobs: CompiledJobs, statements: Statements, options: ReplayOptions) -> None:
        self._jobs = jobs
        self._statements = statements
        require_known("replay_many", options, ReplayOptions.__annotations__)
        self._edit = options.get("edit")
        self._dry_run = options.get("dry_run", False)
        self._interval = _interval(options.get("rate"))
        self._sent = self._sent_before = 0

    def runs(self, which: Iterable[int] | DeadLetters) -> Calls[Iterator[list[int]]]:
        """Return the runs that are meant, in chunks, each of which is for one transaction."""
        if isinstance(which, DeadLetters):
            run_ids: list[int] = yield self._statements.dead_runs(which)
        else:
            run_ids = list(dict.fromkeys(which))
        return (run_ids[at : at + _CHUNK] for at in range(0, len(run_ids), _CHUNK))

    def send(self, run_ids: Sequence[int], tries: int = 1) -> Calls[list[Replayed]]:
        """Send runs again; return what became of each, in the order given."""
        self._sent = self._sent_before = self._sent if tries == 1 else self._sent_before
        dead: list[DeadRun] = yield self._statements.replayable(run_ids)
        judged = [self._judge(run) for run in dead]
        again = [one for one in judged if isinstance(one, _Resent)]
        told = [one for one in judged if isinstance(one, Replayed)]
        if self._dry_run:
            told += [Replayed(one.run_id, "enqueued") for one in again]
        elif again:
            told += yield from self._resend(again)
        found = {one.run_id: one for one in told}
        return [found.get(run_id) or Replayed(run_id, "unknown") for run_id in run_ids]

    def _judge(self, run: DeadRun) -> _Resent | Replayed:
        """Return a run as it is to be sent again, or why it is not."""
        if run.state not in ("failed", "cancelled"):
            return Replayed(run.run_id, "not-dead")
        if run.replayed_as is not None:
            return Replayed(run.run_id, "duplicate", run.replayed_as)
        if run.job_id not in self._jobs:
            reason = unknown_job(run.job_id, self._jobs)
            return Replayed(run.run_id, "unknown", reason=reason)
        try:
            event, data = self._event(run)
        except UnreadableError as error:
            return Replayed(run.run_id, "unresolved", reason=str(error))
        try:
            row = self._dispatch(run, event, data)
        except EventError as error:
            return Replayed(run.run_id, "unresolved", reason=str(error))
        if row.key_error is not None:
            return Replayed(run.run_id, "unresolved", reason=row.key_error)
        self._sent += 1
        return _Resent(run.run_id, event, row)

    def _event(self, run: DeadRun) -> tuple[Encoded, Any]:
        """Return the event that stands for the run's own. Its id lets it be sent once only."""
        event_id = f"jobspec/replay/{run.run_id}"
        data = decode(run.event_data)
        if self._edit is None:  # the text as it was sent, with its U+0000 and its long numbers
            return Encoded(event_id, run.event_name, run.event_data, run.event_ts), data
        edited = self._edit(data)
        return encode_event(Event(run.event_name, edited, event_id, run.event_ts)), edited

    def _dispatch(self, run: DeadRun, event: Encoded, data: Any) -> Dispatch:
        """Resolve the run's keys anew. It is not debounced: somebody wants this very run.

        A run that was added by `add_job` has no keys, and the attempts that were asked for.
        """
        row = Dispatch(event.id, run.job_id, run.max_attempts)
        if event.name != EVENT_NAME:
            row = dispatch(event, data, self._jobs[run.job_id])
        if row.idempotency_key is not None:
            key = f"{row.idempotency_key}:replay:{run.run_id}"
            row = row._replace(idempotency_digest=digest(key), idempotency_key=key)
        return row._replace(
            debounce_digest=None,
            debounce_key=None,
            timeout=None,
            wait=self._interval * self._sent,
        )

    def _resend(self, again: Sequence[_Resent]) -> Calls[list[Replayed]]:
        rows: list[SentRow] = yield self._statements.send(
            [one.event for one in again], [one.dispatch for one in again]
        )
        sent = {again[row.position - 1].run_id: row for row in rows}
        yield self._statements.replayed((run_id, row.run_id) for run_id, row in sent.items())
        return [_told(one.run_id, sent.get(one.run_id)) for one in again]


def _told(run_id: int, row: SentRow | None) -> Replayed:
    if row is None:  # somebody gave an event of theirs this id
        return Replayed(run_id, "duplicate")
    due = row.run_at if row.outcome == "enqueued" else None
    return Replayed(run_id, row.outcome, row.run_id, due)


def _interval(rate: float | None) -> timedelta:
    """Return the time between two runs at a rate in runs a second."""
    if rate is None:
        return timedelta(0)
    if not 0 < rate <= _FASTEST:
        raise ReplayError(f"rate must be more than 0 and at most {_FASTEST} runs a second")
    return timedelta(seconds=1 / rate)
