"""Events on their way into the database: what to execute, and what became of each.

The exchange is a generator that yields statements and is sent their rows, so that sync and async
clients drive the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from jobspec_engine.dispatch import Dispatch, dispatch, note_of
from jobspec_engine.events import Dispatched, Encoded, Event, Sent, encode_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from psycopg import BaseConnection

    from jobspec import CompiledJobs
    from jobspec_engine.rows import KnownRow, SentRow
    from jobspec_engine.statements import Statements, Steps

# Events a statement. More of them take more memory, and no less time.
CHUNK = 5_000


class Prepared(NamedTuple):
    """An event that was checked, and its rows for the jobs it triggers.

    `notes` say of jobs by id what became of their keys that is no fault, and may surprise.
    """

    event: Encoded
    dispatches: tuple[Dispatch, ...]
    notes: Mapping[str, str]


def prepare(event: Event, jobs: CompiledJobs) -> Prepared:
    """Check an event and resolve its keys. Raises `EventError`; nothing is written yet."""
    encoded = encode_event(event)
    triggered = jobs.for_event(event.name)
    rows = tuple(dispatch(encoded, event.data, job) for job in triggered)
    notes = {
        job.id: note
        for job, row in zip(triggered, rows, strict=True)
        if (note := note_of(row, event.data, job)) is not None
    }
    return Prepared(encoded, rows, notes)


def needs_own(connection: BaseConnection[Any], batch: Iterable[Prepared]) -> bool:
    """Tell whether to open a transaction, for two statements that must hold together.

    Without autocommit there is one, the caller's to end.
    """
    rows = (row for prepared in batch for row in prepared.dispatches)
    return connection.autocommit and any(map(_has_both_keys, rows))


def exchange(batch: Sequence[Prepared], statements: Statements) -> Steps[list[Sent]]:
    """Send events: yields statements, takes their rows, returns what became of each event."""
    first: dict[str, Prepared] = {}
    for prepared in batch:
        first.setdefault(prepared.event.id, prepared)
    dispatches = [row for prepared in first.values() for row in prepared.dispatches]
    rows: list[SentRow] = yield statements.send([one.event for one in first.values()], dispatches)
    moved = _moved(rows, dispatches)
    if moved:
        yield statements.point_idempotency(moved)
    answers = _by_event(rows, dispatches)
    again = [one for one in batch if first[one.event.id] is not one or one.event.id not in answers]
    runs: list[KnownRow] = []
    if any(one.dispatches for one in again):
        runs = yield statements.runs_of_events([one.event.id for one in again])
    run_ids = {(run.event_id, run.job_id): run.run_id for run in runs}
    known = {id(one): Sent(one.event.id, tuple(_duplicates(one, run_ids))) for one in again}
    return [
        known.get(id(one)) or Sent(one.event.id, tuple(_told(one, answers[one.event.id])))
        for one in batch
    ]


def exchange_chunks(
    events: Sequence[Event], jobs: CompiledJobs, statements: Statements
) -> Steps[list[Sent]]:
    """Send many events, `CHUNK` of them a statement: only those are in memory in all their forms.

    The caller holds the statements together by a transaction. Raises `EventError`, perhaps when
    some statements were executed.
    """
    sent: list[Sent] = []
    for start in range(0, len(events), CHUNK):
        batch = [prepare(event, jobs) for event in events[start : start + CHUNK]]
        sent += yield from exchange(batch, statements)
    return sent


def due_now(sent: Iterable[Sent]) -> bool:
    """Tell whether workers have reason to wake: a run was enqueued that need not wait."""
    return any(job.outcome == "enqueued" for one in sent for job in one.jobs)


def _has_both_keys(row: Dispatch) -> bool:
    return row.idempotency_digest is not None and row.debounce_digest is not None


def _moved(rows: Iterable[SentRow], dispatches: Sequence[Dispatch]) -> list[tuple[str, bytes, int]]:
    """Return the idempotency keys whose event coalesced into a run other than the allotted one."""
    sent = ((dispatches[row.position - 1], row) for row in rows if row.outcome == "coalesced")
    return [
        (dispatched.job_id, dispatched.idempotency_digest, row.run_id)
        for dispatched, row in sent
        if dispatched.idempotency_digest is not None
    ]


def _by_event(rows: Sequence[SentRow], dispatches: Sequence[Dispatch]) -> dict[str, list[SentRow]]:
    """Group rows by event. A duplicate names the run that its key's first event ended up in."""
    moved = {row.allotted_run_id: row.run_id for row in rows if row.outcome == "coalesced"}
    answers: dict[str, list[SentRow]] = {}
    for row in rows:
        event_id = dispatches[row.position - 1].event_id
        answers.setdefault(event_id, []).append(
            row._replace(run_id=moved.get(row.run_id, row.run_id))
        )
    return answers


def _told(one: Prepared, rows: Iterable[SentRow]) -> Iterator[Dispatched]:
    for dispatched, row in zip(one.dispatches, rows, strict=True):
        waits = row.outcome in ("enqueued", "coalesced")
        yield Dispatched(
            dispatched.job_id,
            row.outcome,
            row.run_id,
            run_at=row.run_at if waits else None,
            reason=dispatched.key_error
            if row.outcome == "dead-letter"
            else one.notes.get(dispatched.job_id),
        )


def _duplicates(one: Prepared, run_ids: Mapping[tuple[str, str], int]) -> Iterator[Dispatched]:
    for row in one.dispatches:
        yield Dispatched(row.job_id, "duplicate", run_ids.get((row.event_id, row.job_id)))
