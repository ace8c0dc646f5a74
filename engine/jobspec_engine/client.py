"""Send events from anyone's code: an event in, what became of it out."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, Self, Unpack

import psycopg

from jobspec_engine.add_job import AddJobOptions, add_job, added
from jobspec_engine.arguments import require_compiled
from jobspec_engine.batch import (
    CHUNK,
    Prepared,
    due_now,
    exchange,
    exchange_chunks,
    needs_own,
    prepare,
)
from jobspec_engine.cancel import Cancelled, cancel, cancel_by_key
from jobspec_engine.database import again_after_deadlock
from jobspec_engine.events import Dispatched, Event, Sent
from jobspec_engine.pools import CONNECT_TIMEOUT, Pool
from jobspec_engine.replay import Replay, Replayed, replaced_by
from jobspec_engine.statements import Statements, drive, fetch
from jobspec_engine.target import require_supported

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import timedelta
    from types import TracebackType

    from psycopg import Connection

    from jobspec import CompiledJobs
    from jobspec_engine.replay import DeadLetters, ReplayOptions


class Client:
    """Sends events to the jobs they trigger. Safe to share between threads.

        with Client(jobspec.compile("jobs.yaml"), dsn) as client:
            sent = client.send("email.send", {"idempotencyKey": "welcome-42"})

    `jobs` decides which runs an event starts and by which keys; `dsn` names the database,
    `schema` the schema of the engine's tables, `max_connections` how many sends may run at once,
    `connect_timeout` how long one waits for a connection.

    Raises `TypeError` for jobs that are not compiled, `UnsupportedOptionError` for an option that
    the engine can't honour. Each call raises `NotOpenError` on a client that is not open,
    `UnreachableError` (a `psycopg.OperationalError`) when no connection comes in time, and
    `MigrationError` for a schema without the tables it needs.
    """

    def __init__(
        self,
        jobs: CompiledJobs,
        dsn: str,
        *,
        schema: str = "jobspec",
        max_connections: int = 4,
        connect_timeout: timedelta = CONNECT_TIMEOUT,
    ) -> None:
        require_compiled(jobs)
        require_supported(jobs)
        self._jobs = jobs
        self._statements = Statements(schema)
        self._pool = Pool(dsn, schema, max_connections, connect_timeout)

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> None:
        """Open the client, as `with` does, for one that lives as long as its process.

        It connects when something is sent. Raises `NotOpenError` for one that was closed.
        """
        self._pool.open()

    def close(self) -> None:
        """Close the client's connections."""
        self._pool.close()

    def send(
        self,
        name: str,
        data: Mapping[str, object],
        *,
        id: str | None = None,  # noqa: A002  it is the event's id to everybody
        ts: int | None = None,
        connection: Connection[Any] | None = None,
    ) -> Sent:
        """Send one event; it is committed when this returns.

        With a `connection` of the caller's the event becomes a part of its transaction: kept and
        run when that commits, gone without a trace when it rolls back. Raises `EventError` for an
        event that can't be kept, `psycopg.Error` when the database fails.
        """
        return self.send_many([Event(name, data, id, ts)], connection=connection)[0]

    def send_many(
        self, events: Iterable[Event], *, connection: Connection[Any] | None = None
    ) -> list[Sent]:
        """Send events as one: all are kept, or none. Returns what became of each, in order.

        However many there are: they go to the database some thousands at a time.
        """
        given = list(events)
        if len(given) > CHUNK:
            return self._send_chunks(given, connection)
        batch = [prepare(event, self._jobs) for event in given]
        if connection is not None:
            with self._pool.using(connection) as used:
                return self._send(used, batch)
        with self._pool.using() as own:
            sent = self._send(own, batch, wake=False)
            if due_now(sent):
                with suppress(psycopg.OperationalError):  # committed already; polling finds the run
                    fetch(own, self._statements.wake())
            return sent

    def add_job(
        self,
        job_id: str,
        payload: Mapping[str, object] | None = None,
        *,
        connection: Connection[Any] | None = None,
        **options: Unpack[AddJobOptions],
    ) -> Dispatched:
        """Add a run of a job without an event; `AddJobOptions` tells how.

        Returns the run that was made (`enqueued`) or joined (`coalesced`), also under contention.
        With a `connection` it is a part of the caller's transaction, as in `send`. Raises
        `AddJobError` for what can't be added, `psycopg.Error` when the database fails.
        """
        call = add_job(
            self._statements, self._jobs, job_id, payload, options, wake=connection is not None
        )
        if connection is not None:
            with self._pool.using(connection) as used:
                return added(job_id, fetch(used, call))
        with self._pool.using() as own:
            told = added(job_id, fetch(own, call))
            with suppress(psycopg.OperationalError):  # committed already; polling finds the run
                fetch(own, self._statements.wake())
            return told

    def cancel(self, run_id: int, *, connection: Connection[Any] | None = None) -> Cancelled:
        """Ask a run to end. One that waits has ended when this returns; `Cancelled` tells.

        A running one is ended by its worker as soon as that hears of it: an async handler is
        cancelled, what a sync one returns is not recorded. With a `connection` it is a part of the
        caller's transaction, as in `send`. Raises `psycopg.Error` when the database fails.
        """
        with self._pool.using(connection) as used:
            return drive(used, cancel(self._statements, [run_id]))[0]

    def cancel_by_key(
        self,
        job_id: str,
        *,
        idempotency_key: str | None = None,
        job_key: str | None = None,
        connection: Connection[Any] | None = None,
    ) -> list[Cancelled]:
        """Ask the runs of a job to end that go by a key, as `cancel` does; none may be found.

        `idempotency_key` is the text that the option's key resolved to, `job_key` that of
        `debounce` or the one that was given to `add_job`. Raises `ValueError` unless one is given.
        """
        steps = cancel_by_key(self._statements, job_id, idempotency_key, job_key)
        with self._pool.using(connection) as used:
            return drive(used, steps)

    def pause(self, job_id: str) -> bool:
        """Pause a job on all workers; return False where it was paused already.

        Runs of it that are running go on, and no further one is claimed. Events still enqueue runs;
        ticks of its schedules count as missed. Raises `psycopg.Error` when the database fails.
        """
        with self._pool.using() as own:
            return bool(fetch(own, self._statements.pause(job_id)))

    def resume(self, job_id: str) -> bool:
        """Let a paused job go on; return False where it was not paused."""
        with self._pool.using() as own:
            resumed = bool(fetch(own, self._statements.resume(job_id)))
            fetch(own, self._statements.wake())
        return resumed

    def replay(self, run_id: int, data: Mapping[str, object] | None = None) -> Replayed:
        """Send a run again that ended without success, with `data` instead of its own if given.

        The new run has the event's name and time, keys resolved anew, and the idempotency key
        `<key>:replay:<run_id>`, so that it is no duplicate. A run is replayed once: again, and
        `Replayed` tells the first replay. Raises `EventError` for data that can't be kept.
        """
        edit = None if data is None else replaced_by(data)
        return self.replay_many([run_id], edit=edit)[0]

    def replay_many(
        self, which: Iterable[int] | DeadLetters, **options: Unpack[ReplayOptions]
    ) -> list[Replayed]:
        """Send runs again as `replay` does: those given, or of dead letters not replayed yet.

        `ReplayOptions` tells how. They are committed some hundreds at a time.
        """
        replay = Replay(self._jobs, self._statements, options)
        replayed: list[Replayed] = []
        with self._pool.using() as own:
            for run_ids in drive(own, replay.runs(which)):
                with own.transaction():
                    replayed += drive(own, replay.send(run_ids))
            with suppress(psycopg.OperationalError):  # committed already; polling finds the runs
                fetch(own, self._statements.wake())
        return replayed

    def _send_chunks(
        self, events: Sequence[Event], connection: Connection[Any] | None
    ) -> list[Sent]:
        @again_after_deadlock(unless=connection is not None)
        def send_all() -> list[Sent]:
            with self._pool.using(connection) as used:
                if not used.autocommit:
                    used.execute("select")  # begins the caller's, if need be: ours is in it then
                with used.transaction():
                    return drive(used, exchange_chunks(events, self._jobs, self._statements))

        sent = send_all()
        if connection is not None and due_now(sent):
            fetch(connection, self._statements.wake())
        elif connection is None and due_now(sent):
            with suppress(psycopg.OperationalError), self._pool.using() as own:
                fetch(own, self._statements.wake())
        return sent

    def _send(
        self, connection: Connection[Any], batch: Sequence[Prepared], *, wake: bool = True
    ) -> list[Sent]:
        together = connection.transaction() if needs_own(connection, batch) else nullcontext()
        with together:
            sent = drive(connection, exchange(batch, self._statements))
        if wake and due_now(sent):
            fetch(connection, self._statements.wake())
        return sent
