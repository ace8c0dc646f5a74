"""Send events from anyone's code: an event in, what became of it out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self, Unpack

from jobspec_engine.add_job import AddJobOptions, add_job, added
from jobspec_engine.arguments import require_compiled
from jobspec_engine.batch import exchange, prepare, takes_two_statements
from jobspec_engine.bulk import Bulk
from jobspec_engine.calls import only
from jobspec_engine.cancel import cancel, cancel_by_key
from jobspec_engine.events import Dispatched, Event, Sent
from jobspec_engine.pools import CONNECT_TIMEOUT, Pool
from jobspec_engine.replay import Replay, Replayed, replaced_by
from jobspec_engine.statements import Statements
from jobspec_engine.target import require_supported
from jobspec_engine.waker import Waker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta
    from types import TracebackType

    from psycopg import Connection

    from jobspec import CompiledJobs
    from jobspec_engine.calls import Calls
    from jobspec_engine.replay import ReplayOptions
    from jobspec_engine.rows import Cancelled, DeadLetters


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
        self._wake = Waker(lambda: self._pool.drive(self._wake_up))

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
        self._wake.close()
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
        batch = [prepare(Event(name, data, id, ts), self._jobs)]
        told = self._pool.drive(
            lambda tries: exchange(batch, self._statements, again=tries > 1),
            connection,
            whole=takes_two_statements(batch),
            harmless=True,
        )
        if told.wakes:
            self._wake_for(connection)
        return told.sent()[0]

    def send_many(
        self, events: Iterable[Event], *, connection: Connection[Any] | None = None
    ) -> list[Sent]:
        """Send events as one: all are kept, or none. Returns what became of each, in order.

        However many there are: they go to the database a thousand at a time.
        """
        bulk = Bulk(list(events), self._jobs, self._statements)
        told = self._pool.drive(bulk.send, connection, whole=bulk.whole, harmless=True)
        if told.wakes:
            self._wake_for(connection)
        return told.sent()

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
        rows = self._pool.drive(lambda _: only(call), connection)
        if connection is None:
            self._wake()
        return added(job_id, rows)

    def cancel(self, run_id: int, *, connection: Connection[Any] | None = None) -> Cancelled:
        """Ask a run to end. One that waits has ended when this returns; `Cancelled` tells.

        A running one is ended by its worker as soon as that hears of it: an async handler is
        cancelled, what a sync one returns is not recorded. With a `connection` it is a part of the
        caller's transaction, as in `send`. Raises `psycopg.Error` when the database fails.
        """
        return self._pool.drive(lambda _: cancel(self._statements, [run_id]), connection)[0]

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
        key = (idempotency_key, job_key)
        return self._pool.drive(lambda _: cancel_by_key(self._statements, job_id, *key), connection)

    def pause(self, job_id: str) -> bool:
        """Pause a job on all workers; return False where it was paused already.

        Runs of it that are running go on, and no further one is claimed. Events still enqueue runs;
        ticks of its schedules count as missed. Nobody looks whether there is such a job: it may be
        another deployment's. Raises `psycopg.Error` when the database fails.
        """
        call = self._statements.pause(job_id)
        return bool(self._pool.drive(lambda _: only(call)))

    def resume(self, job_id: str) -> bool:
        """Let a paused job go on; return False where it was not paused."""
        call = self._statements.resume(job_id)
        resumed = bool(self._pool.drive(lambda _: only(call)))
        self._wake()
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
        for run_ids in self._pool.drive(lambda _: replay.runs(which)):
            replayed += self._pool.drive(partial(replay.send, run_ids), whole=True)
        self._wake()
        return replayed

    def _wake_for(self, connection: Connection[Any] | None) -> None:
        """Wake workers; for what is in a transaction of the caller's, when that commits."""
        if connection is None:
            self._wake()
        else:
            self._pool.drive(self._wake_up, connection)

    def _wake_up(self, _: int) -> Calls[list[None]]:
        return only(self._statements.wake())
