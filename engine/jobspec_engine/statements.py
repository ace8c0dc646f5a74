"""The SQL files by name: one typed function a statement, which returns a `Call` of it."""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from psycopg import sql

from jobspec_engine.arguments import possible_runs, require_length, require_text
from jobspec_engine.arrays import BigIntegers, Texts, Uuids
from jobspec_engine.calls import Call, Row, first
from jobspec_engine.dispatch import columns
from jobspec_engine.rows import (
    AddedRow,
    Cancelled,
    Claimed,
    Completion,
    DeadLetterRow,
    DeadRun,
    Failure,
    Held,
    KnownRow,
    Reclaimed,
    Renewed,
    RunRow,
    SentKeyedRow,
    SentNewRow,
    SentPlainRow,
    SentRow,
    Suspension,
    WholeRun,
)
from jobspec_engine.send_columns import columns_of, turned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import timedelta
    from uuid import UUID

    from jobspec_engine.dispatch import Dispatch
    from jobspec_engine.events import Encoded
    from jobspec_engine.rows import DeadLetters


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
        return self._sending("send", SentRow._make, events, dispatches)

    def send_new(
        self, events: Sequence[Encoded], dispatches: Sequence[Dispatch]
    ) -> Call[SentNewRow]:
        """Keep events that nobody sent before and enqueue their runs, without keys: one row."""
        return self._sending("send_new", SentNewRow._make, events, dispatches)

    def send_plain(
        self, events: Sequence[Encoded], dispatches: Sequence[Dispatch]
    ) -> Call[SentPlainRow]:
        """Keep events and enqueue their runs, which have no keys: one row."""
        return self._sending("send_plain", SentPlainRow._make, events, dispatches)

    def send_idempotent(
        self, events: Sequence[Encoded], dispatches: Sequence[Dispatch]
    ) -> Call[SentKeyedRow]:
        """Keep events and enqueue their runs, which have idempotency keys or none: one row."""
        return self._sending("send_idempotent", SentKeyedRow._make, events, dispatches)

    def send_debounced(
        self, events: Sequence[Encoded], dispatches: Sequence[Dispatch]
    ) -> Call[SentKeyedRow]:
        """Keep events and enqueue their runs, which have debounce keys and no others: one row."""
        return self._sending("send_debounced", SentKeyedRow._make, events, dispatches)

    def _sending(
        self,
        name: str,
        row: Callable[[Sequence[Any]], Row],
        events: Sequence[Encoded],
        dispatches: Sequence[Dispatch],
    ) -> Call[Row]:
        """Send by the statement of this name, which takes some columns of dispatches."""
        query = self._queries[name]
        of_events, of_dispatches = columns_of(query)
        params = {
            "run_id_sequence": self._run_id_sequence,
            **turned(of_events, events),
            **turned(of_dispatches, dispatches),
        }
        return Call(query, params, row)

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
        return self._fenced("complete", first, ended, results=results)

    def fail(self, failures: Iterable[Failure]) -> Call[int]:
        """End attempts without success: the ids of the runs that were still held."""
        rows = columns(failures, len(Failure._fields))
        return self._call("fail", first, **dict(zip(_FAIL_PARAMETERS, rows, strict=True)))

    def cancel(self, run_ids: Iterable[int]) -> Call[Cancelled]:
        """Ask runs to end: a row for each that there is."""
        return self._call("cancel", Cancelled._make, run_ids=possible_runs(run_ids))

    def runs_with_key(
        self, job_id: str, idempotency_digest: bytes | None, debounce_digest: bytes | None
    ) -> Call[int]:
        """Find the runs of a job that go by a key and have not ended."""
        return self._call(
            "runs_with_key",
            first,
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
        return self._call("dead_runs", first, **_criteria(which))

    def dead_letters(self, which: DeadLetters, limit: int) -> Call[DeadLetterRow]:
        """List dead letters, the latest first."""
        return self._call("dead_letters", DeadLetterRow._make, limit=limit, **_criteria(which))

    def run(self, run_id: int) -> Call[WholeRun]:
        """Return one run and all that is known of it."""
        return self._call("run", WholeRun._make, run_id=run_id)

    def reclaim(self, max_refunds: int, limit: int) -> Call[Reclaimed]:
        """Make runs ready again whose lease ran out, at most `limit`."""
        return self._call("reclaim", Reclaimed._make, max_refunds=max_refunds, limit=limit)

    def next_due(self, job_ids: Sequence[str]) -> Call[float | None]:
        """Tell in how many seconds the next pending run is due; None when there is none."""
        return self._call("next_due", first, job_ids=list(job_ids))

    def pause(self, job_id: str) -> Call[str]:
        """Pause a job: no row where it was paused."""
        return self._call("pause", first, job_id=job_id)

    def resume(self, job_id: str) -> Call[str]:
        """Let a job go on: no row where it was not paused."""
        return self._call("resume", first, job_id=job_id)

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


def _criteria(which: DeadLetters) -> dict[str, object]:
    if which.within is not None:
        require_length("within", which.within)
    return asdict(which)
