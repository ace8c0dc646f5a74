"""The SQL files by name: one typed function a statement.

A function returns a `Call`, which says what to execute and what its rows are; `fetch` and
`fetch_async` execute it. So each statement is written once, for sync and async code alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from psycopg import AsyncConnection, AsyncRawCursor, Connection, RawCursor, sql
from psycopg.rows import tuple_row

from jobspec_engine.arguments import possible_runs, require_text
from jobspec_engine.arrays import (
    BigIntegers,
    Texts,
    Uuids,
)
from jobspec_engine.cancel import Cancelled
from jobspec_engine.dispatch import columns
from jobspec_engine.replay import DeadRun
from jobspec_engine.rows import (
    AddedRow,
    Claimed,
    Completion,
    DeadLetterRow,
    Failure,
    Held,
    KnownRow,
    Reclaimed,
    Renewed,
    RunRow,
    SentPlainRow,
    SentRow,
    Suspension,
    WholeRun,
)
from jobspec_engine.send_columns import DISPATCH_COLUMNS, EVENT_COLUMNS, PLAIN_COLUMNS, turned

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID

    from jobspec_engine.dispatch import Dispatch
    from jobspec_engine.events import Encoded
    from jobspec_engine.replay import DeadLetters

Row = TypeVar("Row")
Result = TypeVar("Result")

# A few statements that belong together, each decided by the rows of those before.
Steps = Generator["Call[Any]", list[Any], Result]


@dataclass(frozen=True, slots=True)
class Call(Generic[Row]):
    """A statement with its parameters; `row` makes a typed row of what comes back."""

    query: bytes
    params: Mapping[str, object]
    row: Callable[[Sequence[Any]], Row]
    # None: the server keeps the plan once it was used a few times. False: it plans anew, for this
    # number of rows; a plan made for few would join many by nested loops.
    prepare: bool | None = None
    # What to do while the database is at it.
    meanwhile: Callable[[], object] | None = None


def fetch(connection: Connection[Any], call: Call[Row]) -> list[Row]:
    """Execute a statement and return its rows, whatever factories the connection has."""
    query, params = _as_sent(call)
    with RawCursor(connection, row_factory=tuple_row) as cursor:
        if call.meanwhile is None:
            cursor.execute(query, params, prepare=call.prepare)
        else:
            with connection.pipeline():
                cursor.execute(query, params, prepare=call.prepare)
                call.meanwhile()
        return [call.row(row) for row in cursor] if _has_rows(cursor) else []


async def fetch_async(connection: AsyncConnection[Any], call: Call[Row]) -> list[Row]:
    """Execute a statement and return its rows, whatever factories the connection has."""
    query, params = _as_sent(call)
    async with AsyncRawCursor(connection, row_factory=tuple_row) as cursor:
        if call.meanwhile is None:
            await cursor.execute(query, params, prepare=call.prepare)
        else:
            async with connection.pipeline():
                await cursor.execute(query, params, prepare=call.prepare)
                call.meanwhile()
        return [call.row(row) for row in await cursor.fetchall()] if _has_rows(cursor) else []


def _has_rows(cursor: RawCursor[Any] | AsyncRawCursor[Any]) -> bool:
    """Tell whether a statement returns rows. `description` would describe each of their columns."""
    return cursor.rownumber is not None


def _as_sent(call: Call[Any]) -> tuple[bytes, list[object]]:
    query, names = _numbered(call.query)
    return query, [call.params[name] for name in names]


@cache
def _numbered(query: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return a query with its parameters numbered, as Postgres takes it, and their names.

    psycopg would do so each time with a query as long as some of ours.
    """
    numbers: dict[bytes, int] = {}
    numbered = re.sub(
        rb"%\((\w+)\)s",
        lambda found: b"$%d" % numbers.setdefault(found[1], len(numbers) + 1),
        query,
    )
    return numbered.replace(b"%%", b"%"), tuple(name.decode() for name in numbers)


def drive(connection: Connection[Any], steps: Steps[Result]) -> Result:
    """Execute what a generator yields, send it the rows, and return its result."""
    try:
        call = next(steps)
        while True:
            call = steps.send(fetch(connection, call))
    except StopIteration as finished:
        result: Result = finished.value
        return result


async def drive_async(connection: AsyncConnection[Any], steps: Steps[Result]) -> Result:
    """Execute what a generator yields, send it the rows, and return its result."""
    try:
        call = next(steps)
        while True:
            call = steps.send(await fetch_async(connection, call))
    except StopIteration as finished:
        result: Result = finished.value
        return result


def only(call: Call[Row]) -> Steps[list[Row]]:
    """Execute one statement, where a few could be; return its rows."""
    rows: list[Row] = yield call
    return rows


def beside(steps: Steps[Result], meanwhile: Callable[[], object]) -> Steps[Result]:
    """Do something while the database is at the first statement."""
    try:
        call = replace(next(steps), meanwhile=meanwhile)
        while True:
            call = steps.send((yield call))
    except StopIteration as finished:
        result: Result = finished.value
        return result


def _first(row: Sequence[Any]) -> Any:
    return row[0]


class Statements:
    """The statements, for the tables of one schema."""

    def __init__(self, schema: str = "jobspec") -> None:
        self.schema = schema
        self.channel = f"{schema}.wake"
        self._run_id_sequence = f"{sql.Identifier(schema).as_string()}.job_queue_id_seq"

    @cached_property
    def _queries(self) -> dict[str, bytes]:
        quoted = sql.Identifier(self.schema).as_bytes()
        return {
            file.name.removesuffix(".sql"): file.read_bytes().replace(b"{schema}", quoted)
            for file in files("jobspec_engine").joinpath("sql").iterdir()
            if file.name.endswith(".sql")
        }

    def _call(
        self, name: str, row: Callable[[Sequence[Any]], Row], /, **params: object
    ) -> Call[Row]:
        for parameter, value in params.items():
            if isinstance(value, str):
                require_text(parameter, value)
        return Call(self._queries[name], params, row)

    def send(self, events: Sequence[Encoded], dispatches: Sequence[Dispatch]) -> Call[SentRow]:
        """Keep events and enqueue their runs: a row for each dispatch of an event that is new."""
        call = self._call(
            "send",
            SentRow._make,
            run_id_sequence=self._run_id_sequence,
            **turned(EVENT_COLUMNS, events),
            **turned(DISPATCH_COLUMNS, dispatches),
        )
        return replace(call, prepare=False) if len(dispatches) > _MANY else call

    def send_plain(
        self, events: Sequence[Encoded], dispatches: Sequence[Dispatch]
    ) -> Call[SentPlainRow]:
        """Keep events and enqueue their runs, which have no keys: one row."""
        return self._call(
            "send_plain",
            SentPlainRow._make,
            run_id_sequence=self._run_id_sequence,
            **turned(EVENT_COLUMNS, events),
            **turned(PLAIN_COLUMNS, [row[: len(PLAIN_COLUMNS)] for row in dispatches]),
        )

    def known_events(self, event_ids: Sequence[str]) -> Call[KnownRow]:
        """Find what became of events that were sent before: a row for each job."""
        return self._call("known_events", KnownRow._make, event_ids=list(event_ids))

    def point_idempotency(self, moved: Iterable[tuple[str, bytes, int]]) -> Call[None]:
        """Let idempotency keys (job id, digest) name another run."""
        job_ids, digests, run_ids = columns(moved, 3)
        return self._call(
            "point_idempotency", lambda _: None, job_ids=job_ids, digests=digests, run_ids=run_ids
        )

    def add_job(self, **params: object) -> Call[AddedRow]:
        """Add a run, or join the one that waits: the parameters of `add_job.sql`."""
        return self._call("add_job", AddedRow._make, **params)

    def wake(self) -> Call[None]:
        """Wake the workers that sleep."""
        return self._call("wake", lambda _: None, channel=self.channel)

    def claim(
        self, job_ids: Sequence[str], limit: int, lease: timedelta, lease_token: UUID, worker: str
    ) -> Call[Claimed]:
        """Take runs that are due, at most `limit` and `MOST_CLAIMED`, under a lease."""
        return self._call(
            "claim",
            Claimed._make,
            job_ids=list(job_ids),
            limit=min(limit, MOST_CLAIMED),
            lease=lease,
            lease_token=lease_token,
            worker=worker,
        )

    def heartbeat(self, held: Sequence[Held], lease: timedelta) -> Call[Renewed]:
        """Extend leases: those that are still held, and which of them were locked."""
        return self._fenced("heartbeat", Renewed._make, held, lease=lease)

    def release(self, suspensions: Iterable[Suspension]) -> Call[Held]:
        """Give runs back, at once or until their steps have waited: those that were still held."""
        run_ids, tokens, wakes_at, finishes, entered = columns(suspensions, 5)
        return self._call(
            "release",
            Held._make,
            run_ids=run_ids,
            lease_tokens=tokens,
            wakes_at=wakes_at,
            finishes=finishes,
            entered=entered,
        )

    def complete(self, completions: Iterable[Completion]) -> Call[int]:
        """End runs with success: the ids of the runs that were still held."""
        ended = list(completions)
        results = Texts(one.result for one in ended)
        return self._fenced("complete", _first, ended, results=results)

    def fail(self, failures: Iterable[Failure]) -> Call[int]:
        """End attempts without success: the ids of the runs that were still held."""
        rows = columns(failures, len(Failure._fields))
        return self._call("fail", _first, **dict(zip(_FAIL_PARAMETERS, rows, strict=True)))

    def cancel(self, run_ids: Iterable[int]) -> Call[Cancelled]:
        """Ask runs to end: a row for each that there is."""
        return self._call("cancel", Cancelled._make, run_ids=possible_runs(run_ids))

    def runs_with_key(
        self, job_id: str, idempotency_digest: bytes | None, debounce_digest: bytes | None
    ) -> Call[int]:
        """Find the runs of a job that go by a key and have not ended."""
        return self._call(
            "runs_with_key",
            _first,
            job_id=job_id,
            idempotency_digest=idempotency_digest,
            debounce_digest=debounce_digest,
        )

    def replayable(self, run_ids: Iterable[int]) -> Call[DeadRun]:
        """Lock runs that somebody wants to replay, and return them."""
        return self._call("replayable", DeadRun._make, run_ids=possible_runs(run_ids))

    def replayed(self, replays: Iterable[tuple[int, int]]) -> Call[None]:
        """Let runs (the first of each pair) name those that they were replayed as."""
        run_ids, new_ids = columns(replays, 2)
        return self._call("replayed", lambda _: None, run_ids=run_ids, replays=new_ids)

    def dead_runs(self, which: DeadLetters) -> Call[int]:
        """Find the runs of dead letters that were not replayed yet."""
        return self._call("dead_runs", _first, **asdict(which))

    def dead_letters(self, which: DeadLetters, limit: int) -> Call[DeadLetterRow]:
        """List dead letters, the latest first."""
        return self._call("dead_letters", DeadLetterRow._make, limit=limit, **asdict(which))

    def run(self, run_id: int) -> Call[WholeRun]:
        """Return one run and all that is known of it."""
        return self._call("run", WholeRun._make, run_id=run_id)

    def reclaim(self, max_refunds: int, limit: int) -> Call[Reclaimed]:
        """Make runs ready again whose lease ran out, at most `limit`."""
        return self._call("reclaim", Reclaimed._make, max_refunds=max_refunds, limit=limit)

    def next_due(self, job_ids: Sequence[str]) -> Call[float | None]:
        """Tell in how many seconds the next pending run is due; None when there is none."""
        return self._call("next_due", _first, job_ids=list(job_ids))

    def pause(self, job_id: str) -> Call[str]:
        """Pause a job: no row where it was paused."""
        return self._call("pause", _first, job_id=job_id)

    def resume(self, job_id: str) -> Call[str]:
        """Let a job go on: no row where it was not paused."""
        return self._call("resume", _first, job_id=job_id)

    def runs(self, job_id: str | None, state: str | None, limit: int) -> Call[RunRow]:
        """List the newest runs."""
        return self._call("runs", RunRow._make, job_id=job_id, state=state, limit=limit)

    def _fenced(
        self,
        name: str,
        row: Callable[[Sequence[Any]], Row],
        held: Sequence[Held | Completion],
        **params: object,
    ) -> Call[Row]:
        return self._call(
            name,
            row,
            run_ids=BigIntegers(one.run_id for one in held),
            lease_tokens=Uuids(one.lease_token for one in held),
            **params,
        )


# How many runs one claim takes: claim.sql tells the planner so.
MOST_CLAIMED = 1000

# From here on planning anew costs less than a plan made for few rows.
_MANY = 200

# The parameters of fail.sql that hold the columns of Failure, in its order.
_FAIL_PARAMETERS = (
    "run_ids",
    "lease_tokens",
    "delays",
    "reasons",
    "messages",
    "errors",
    "tracebacks",
    "retries_at",
    "finishes",
)
