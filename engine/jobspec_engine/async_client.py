"""Send events from async code: concurrent sends share a statement and its commit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self, Unpack

from jobspec_engine.add_job import AddJobOptions, add_job, added
from jobspec_engine.arguments import require_compiled
from jobspec_engine.batch import exchange, prepare, takes_two_statements
from jobspec_engine.bulk import Bulk
from jobspec_engine.calls import only
from jobspec_engine.cancel import cancel, cancel_by_key
from jobspec_engine.coalesce import Coalescer
from jobspec_engine.events import Dispatched, Event, Sent
from jobspec_engine.pools import CONNECT_TIMEOUT, AsyncPool
from jobspec_engine.replay import Replay, Replayed, replaced_by
from jobspec_engine.statements import Statements
from jobspec_engine.target import require_supported
from jobspec_engine.waker import AsyncWaker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import timedelta
    from types import TracebackType

    from psycopg import AsyncConnection

    from jobspec import CompiledJobs
    from jobspec_engine.batch import Prepared
    from jobspec_engine.calls import Calls
    from jobspec_engine.replay import ReplayOptions
    from jobspec_engine.rows import Cancelled, DeadLetters


class AsyncClient:
    """Sends events from async code. Concurrent sends share a statement and its commit.

        async with AsyncClient(jobspec.compile("jobs.yaml"), dsn) as client:
            sent = await client.send("email.send", {"idempotencyKey": "welcome-42"})

    Takes what `Client` takes. Each call returns when its own event is committed; a bad event among
    concurrent ones fails alone.
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
        self._pool = AsyncPool(dsn, schema, max_connections, connect_timeout)
        self._single = Coalescer(self._send, size=_size)
        self._wake = AsyncWaker(lambda: self._pool.drive(self._wake_up))

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the client, as `async with` does. As `Client.open`."""
        await self._pool.open()

    async def close(self) -> None:
        """Finish the sends on their way and close the client's connections."""
        await self._single.join()
        await self._wake.join()
        await self._pool.close()

    async def send(
        self,
        name: str,
        data: Mapping[str, object],
        *,
        id: str | None = None,  # noqa: A002  it is the event's id to everybody
        ts: int | None = None,
        connection: AsyncConnection[Any] | None = None,
    ) -> Sent:
        """Send one event; it is committed when this returns. As `Client.send`."""
        prepared = prepare(Event(name, data, id, ts), self._jobs)
        if connection is None:
            return await self._single(prepared)
        return (await self._send([prepared], connection))[0]

    async def send_many(
        self, events: Iterable[Event], *, connection: AsyncConnection[Any] | None = None
    ) -> list[Sent]:
        """Send events as one: all are kept, or none. As `Client.send_many`."""
        bulk = Bulk(list(events), self._jobs, self._statements)
        told = await self._pool.drive(bulk.send, connection, whole=bulk.whole, harmless=True)
        if told.wakes:
            await self._wake_for(connection)
        return told.sent()

    async def add_job(
        self,
        job_id: str,
        payload: Mapping[str, object] | None = None,
        *,
        connection: AsyncConnection[Any] | None = None,
        **options: Unpack[AddJobOptions],
    ) -> Dispatched:
        """Add a run of a job without an event. As `Client.add_job`."""
        call = add_job(
            self._statements, self._jobs, job_id, payload, options, wake=connection is not None
        )
        rows = await self._pool.drive(lambda _: only(call), connection)
        if connection is None:
            self._wake()
        return added(job_id, rows)

    async def cancel(
        self, run_id: int, *, connection: AsyncConnection[Any] | None = None
    ) -> Cancelled:
        """Ask a run to end. As `Client.cancel`."""
        told = await self._pool.drive(lambda _: cancel(self._statements, [run_id]), connection)
        return told[0]

    async def cancel_by_key(
        self,
        job_id: str,
        *,
        idempotency_key: str | None = None,
        job_key: str | None = None,
        connection: AsyncConnection[Any] | None = None,
    ) -> list[Cancelled]:
        """Ask the runs of a job to end that go by a key. As `Client.cancel_by_key`."""
        key = (idempotency_key, job_key)
        return await self._pool.drive(
            lambda _: cancel_by_key(self._statements, job_id, *key), connection
        )

    async def pause(self, job_id: str) -> bool:
        """Pause a job on all workers. As `Client.pause`."""
        call = self._statements.pause(job_id)
        return bool(await self._pool.drive(lambda _: only(call)))

    async def resume(self, job_id: str) -> bool:
        """Let a paused job go on. As `Client.resume`."""
        call = self._statements.resume(job_id)
        resumed = bool(await self._pool.drive(lambda _: only(call)))
        self._wake()
        return resumed

    async def replay(self, run_id: int, data: Mapping[str, object] | None = None) -> Replayed:
        """Send a run again that ended without success. As `Client.replay`."""
        edit = None if data is None else replaced_by(data)
        return (await self.replay_many([run_id], edit=edit))[0]

    async def replay_many(
        self, which: Iterable[int] | DeadLetters, **options: Unpack[ReplayOptions]
    ) -> list[Replayed]:
        """Send runs again, those given or those of dead letters. As `Client.replay_many`."""
        replay = Replay(self._jobs, self._statements, options)
        replayed: list[Replayed] = []
        for run_ids in await self._pool.drive(lambda _: replay.runs(which)):
            replayed += await self._pool.drive(partial(replay.send, run_ids), whole=True)
        self._wake()
        return replayed

    async def _send(
        self, batch: Sequence[Prepared], connection: AsyncConnection[Any] | None = None
    ) -> list[Sent]:
        """Send events, all or none: of concurrent senders, or one on the caller's connection."""
        told = await self._pool.drive(
            lambda tries: exchange(batch, self._statements, again=tries > 1),
            connection,
            whole=takes_two_statements(batch),
            harmless=True,
        )
        if told.wakes:
            await self._wake_for(connection)
        return told.sent()

    async def _wake_for(self, connection: AsyncConnection[Any] | None) -> None:
        """Wake workers; for what is in a transaction of the caller's, when that commits."""
        if connection is None:
            self._wake()
        else:
            await self._pool.drive(self._wake_up, connection)

    def _wake_up(self, _: int) -> Calls[list[None]]:
        return only(self._statements.wake())


def _size(one: Prepared) -> int:
    return len(one.event.data)
