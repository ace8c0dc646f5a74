"""Compiled jobs on a throw-away database, run by the test itself."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import psycopg

from jobspec_engine.calls import fetch
from jobspec_engine.client import Client
from jobspec_engine.statements import Statements
from jobspec_engine.testing.stand_ins import StandIns
from jobspec_engine.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from jobspec import CompiledJobs
    from jobspec_engine.events import Sent
    from jobspec_engine.rows import RunRow
    from jobspec_engine.testing.databases import Clock

_MOST_RUNS = 10_000
_LEASE = timedelta(seconds=30)

# From then on the worker can give nothing back, as if it were dead.
_TAKE_LEASES = """
    update jobspec.job_queue set lease_token = gen_random_uuid() where state = 'running'
"""

_MANY_DEATHS = 1_000  # a test may kill as often as it likes


class Rehearsal:
    """Sends events and runs what is due, when the test says so; `clock` is what the test moves.

        with Rehearsal(jobs, dsn, clock) as rehearsal:
            rehearsal.send("email.send", {"idempotencyKey": "welcome-42"})
            rehearsal.run_until_idle()
            assert [run.state for run in rehearsal.runs()] == ["completed"]

    `dsn` names a migrated database. `client` is there for what else is to be asked of the engine.
    """

    def __init__(self, jobs: CompiledJobs, dsn: str, clock: Clock) -> None:
        self.clock = clock
        self.client = Client(jobs, dsn)
        self._jobs = jobs
        self._dsn = dsn
        self._statements = Statements()
        self._stand_ins = StandIns()

    def __enter__(self) -> Self:
        self.client.__enter__()
        self._connection: psycopg.Connection[Any] = psycopg.connect(self._dsn, autocommit=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()
        self.client.close()
        if error is None:
            self._stand_ins.require_deaths()

    def send(
        self,
        name: str,
        data: Mapping[str, object],
        *,
        id: str | None = None,  # noqa: A002  it is the event's id to everybody
        ts: int | None = None,
    ) -> Sent:
        """Send one event, as `Client.send` does."""
        return self.client.send(name, data, id=id, ts=ts)

    def run_until_idle(self) -> None:
        """Run what is due, and what becomes due by that, until nothing is.

        Handlers that fail fail their runs, as they do in a worker: look at `runs()`. In an async
        test the handlers have an event loop of their own; `run_until_idle_async` shares the test's.
        """
        with ThreadPoolExecutor(1, "jobspec rehearsal") as threads:
            threads.submit(asyncio.run, self.run_until_idle_async()).result()

    async def run_until_idle_async(self) -> None:
        """Run what is due in this event loop. As `run_until_idle`."""
        while await self._work():
            pass

    async def _work(self) -> bool:
        """Run what is due; return whether the worker died of it."""
        died = self._stand_ins.died = asyncio.Event()
        jobs = self._stand_ins.jobs(self._jobs)
        worker = Worker(jobs, self._dsn, lease=_LEASE, short=timedelta(0))
        working = asyncio.create_task(worker.run(until_idle=True))
        dying = asyncio.create_task(died.wait())
        await asyncio.wait([working, dying], return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        if died.is_set():
            self._connection.execute(_TAKE_LEASES)
            worker.stop(now=True)
        await working
        if died.is_set():
            self.clock.advance(_LEASE + timedelta(seconds=1))
            fetch(self._connection, self._statements.reclaim(_MANY_DEATHS, _MOST_RUNS))
        return died.is_set()

    def replace_step(self, step: str, fn: Callable[..., object]) -> None:
        """Have steps of this name call `fn` instead of their own function, with its arguments.

        What `fn` returns is to be of the type that the step's own result has.
        """
        self._stand_ins.functions[step] = fn

    def kill_at_step(self, step: str, *, after: bool = False) -> None:
        """Have the worker die when it next comes to this step: before its function is called.

        With `after` the function has returned, and what it returned is not kept: the moment at
        which a side effect is done and nobody knows. Another worker goes on when the lease of the
        dead one has run out, by the clock; the attempt is not used up. At the end of the rehearsal
        an `AssertionError` tells of a step that no run came to.
        """
        self._stand_ins.deadly[step] = after

    def run_to_the_end(self, within: timedelta = timedelta(days=366)) -> None:
        """Run what is due, and move the clock on to what is due next, until no run waits.

        So retries, sleeps and debounced runs take no time. Raises `TimeoutError` when a run still
        waits after `within` by the clock.
        """
        end = self.clock.now() + within
        self.run_until_idle()
        while (seconds := self._until_next_due()) is not None:
            due = self.clock.now() + timedelta(seconds=seconds)
            if due > end:
                raise TimeoutError(f"a run still waits for {due}")
            self.clock.set(due)
            self.run_until_idle()

    def runs(self, job_id: str | None = None) -> list[RunRow]:
        """Return the runs, of one job or of all, in the order in which they were made.

        The `result` of each is the value that its handler returned, as it is read back from JSON.
        """
        rows = fetch(self._connection, self._statements.runs(job_id, None, _MOST_RUNS))
        return [_with_value(row) for row in reversed(rows)]

    def _until_next_due(self) -> float | None:
        return fetch(self._connection, self._statements.next_due(tuple(self._jobs)))[0]


def _with_value(row: RunRow) -> RunRow:
    return row if row.result is None else row._replace(result=json.loads(row.result))
