"""Events on their way into the database: what to execute, and what became of each.

The exchange is a generator that yields statements and is sent their rows, so that sync and async
clients drive the same one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from jobspec_engine.dispatch import (
    Dispatch,
    dispatch,
    is_debounced,
    is_idempotent,
    is_plain,
    note_of,
)
from jobspec_engine.events import Dispatched, Encoded, Event, Sent, encode_event
from jobspec_engine.rows import SentKeyedRow, SentNewRow, SentPlainRow
from jobspec_engine.telemetry import carried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from jobspec import CompiledJobs
    from jobspec_engine.calls import Calls
    from jobspec_engine.events import Outcome
    from jobspec_engine.rows import KnownRow, SentRow
    from jobspec_engine.statements import Statements

_NO_NOTES: Mapping[str, str] = {}

# Of what became of events, those of which a run waits.
_WAITS = frozenset({"enqueued", "coalesced"})


class Prepared(NamedTuple):
    """An event that was checked, and its rows for the jobs it triggers.

    `notes` say of jobs by id what became of their keys that is no fault, and may surprise.
    `named`: its sender chose its id, which others may have sent before.
    """

    event: Encoded
    dispatches: tuple[Dispatch, ...]
    notes: Mapping[str, str] = _NO_NOTES
    named: bool = True


class Exchanged(NamedTuple):
    """What became of each event, made when it is asked for; whether to wake workers."""

    sent: Callable[[], list[Sent]]
    wakes: bool


def prepare(
    event: Event,
    jobs: CompiledJobs,
    event_id: str | None = None,
    trace: Callable[[], str | None] = carried,
) -> Prepared:
    """Check an event and resolve its keys. Raises `EventError`; nothing is written yet.

    `event_id` is for one whose sender chose none, `trace` tells in which it is sent.
    """
    encoded = encode_event(event, event_id, trace)
    rows: list[Dispatch] = []
    notes: dict[str, str] = {}
    for job in jobs.for_event(event.name):
        row = dispatch(encoded, event.data, job)
        rows.append(row)
        if (note := note_of(row, event.data, job)) is not None:
            notes[job.id] = note
    return Prepared(encoded, tuple(rows), notes or _NO_NOTES, event.id is not None)


def takes_two_statements(batch: Iterable[Prepared]) -> bool:
    """Tell whether the exchange may take two statements that must hold together."""
    return any(
        row.idempotency_digest is not None and row.debounce_digest is not None
        for prepared in batch
        for row in prepared.dispatches
    )


def exchange(
    batch: Sequence[Prepared], statements: Statements, *, again: bool = False
) -> Calls[Exchanged]:
    """Send events: yields statements, takes their rows, returns what became of each event.

    `again`: whether they were committed before is not known. Then one whose id is of our making is
    told of as it was the first time.
    """
    first = {one.event.id: one for one in reversed(batch)}
    once = [one for one in batch if first[one.event.id] is one]
    events = [one.event for one in once]
    dispatches = [row for one in once for row in one.dispatches]
    new = not again and all(map(_is_new, batch))
    told = yield from _send(events, dispatches, statements, new=new)
    no_id_twice = len(once) == len(batch)
    if isinstance(told, SentNewRow) or (
        isinstance(told, SentPlainRow) and no_id_twice and len(told.run_ids) == len(dispatches)
    ):
        return Exchanged(partial(_all_enqueued, batch, told), told.watched and bool(dispatches))
    rows = told.rows() if isinstance(told, SentPlainRow) else told
    moved = _moved(rows, dispatches)
    if moved:
        yield statements.point_idempotency(moved)
    answers = _by_event(rows, dispatches)
    repeated = [
        one for one in batch if one.event.id not in answers or first[one.event.id] is not one
    ]
    known: dict[int, Sent] = {}
    if repeated:
        known = yield from _known(repeated, statements, again=again)
    return Exchanged(
        lambda: [known.get(id(one)) or _told(one, answers[one.event.id]) for one in batch],
        any(row.outcome == "enqueued" and row.watched for row in rows),
    )


def _is_new(one: Prepared) -> bool:
    """Tell whether nobody can have sent an event before, and it happens as it arrives."""
    return not one.named and one.event.ts is None


def _known(
    repeated: Sequence[Prepared], statements: Statements, *, again: bool
) -> Calls[dict[int, Sent]]:
    """Tell of events that were sent before, by the identity of each."""
    found: dict[tuple[str, str], KnownRow] = {}
    if any(one.dispatches for one in repeated):
        rows: list[KnownRow] = yield statements.known_events([one.event.id for one in repeated])
        found = {(row.event_id, row.job_id): row for row in rows}
    return {id(one): _told_again(one, found, as_first=again and not one.named) for one in repeated}


def _told_again(
    one: Prepared, found: Mapping[tuple[str, str], KnownRow], *, as_first: bool
) -> Sent:
    known = [(row, found.get((row.event_id, row.job_id))) for row in one.dispatches]
    told = [
        _dispatched(one, row, then.outcome, then.run_id, then.run_at)
        if then is not None and as_first
        else Dispatched(row.job_id, "duplicate", then and then.run_id)
        for row, then in known
    ]
    return Sent(one.event.id, tuple(told))


def _send(
    events: Sequence[Encoded], dispatches: Sequence[Dispatch], statements: Statements, *, new: bool
) -> Calls[SentNewRow | SentPlainRow | list[SentRow]]:
    """Send events by the smallest statement that does; by `send` where a step waits for one."""
    for takes, smaller in (
        (is_plain, statements.send_new if new else statements.send_plain),
        (is_idempotent, statements.send_idempotent),
        (is_debounced, statements.send_debounced),
    ):
        if all(map(takes, dispatches)):
            (told,) = yield smaller(events, dispatches)
            if told.awaited:
                break
            return told.rows() if isinstance(told, SentKeyedRow) else told
    rows: list[SentRow] = yield statements.send(events, dispatches)
    return rows


def _all_enqueued(batch: Iterable[Prepared], told: SentNewRow | SentPlainRow) -> list[Sent]:
    """Tell of events that made a run for each job that they trigger."""
    run_ids = iter(told.run_ids)
    return [
        Sent(
            one.event.id,
            tuple(
                [
                    Dispatched(
                        row.job_id,
                        "enqueued",
                        next(run_ids),
                        told.run_at,
                        one.notes.get(row.job_id),
                    )
                    for row in one.dispatches
                ]
            ),
        )
        for one in batch
    ]


def _moved(rows: Iterable[SentRow], dispatches: Sequence[Dispatch]) -> list[tuple[str, bytes, int]]:
    """Return the idempotency keys whose event coalesced into a run other than the allotted one."""
    sent = ((dispatches[row.position - 1], row) for row in rows if row.outcome == "coalesced")
    return [
        (dispatched.job_id, dispatched.idempotency_digest, row.run_id)
        for dispatched, row in sent
        if dispatched.idempotency_digest is not None
    ]


def _by_event(rows: Sequence[SentRow], dispatches: Sequence[Dispatch]) -> dict[str, list[SentRow]]:
    answers: dict[str, list[SentRow]] = {}
    for row in rows:
        answers.setdefault(dispatches[row.position - 1].event_id, []).append(row)
    return answers


def _told(one: Prepared, rows: Iterable[SentRow]) -> Sent:
    told = [
        _dispatched(one, dispatched, row.outcome, row.run_id, row.run_at)
        for dispatched, row in zip(one.dispatches, rows, strict=True)
    ]
    return Sent(one.event.id, tuple(told))


def _dispatched(
    one: Prepared, row: Dispatch, outcome: Outcome, run_id: int, run_at: datetime | None
) -> Dispatched:
    reason = row.key_error if outcome == "dead-letter" else one.notes.get(row.job_id)
    return Dispatched(row.job_id, outcome, run_id, run_at if outcome in _WAITS else None, reason)
