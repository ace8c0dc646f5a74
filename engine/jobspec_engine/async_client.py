"""Send events from async code: concurrent sends share a statement and its commit."""

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
from jobspec_engine.coalesce import Coalescer
from jobspec_engine.database import again_after_deadlock
from jobspec_engine.events import Dispatched, Event, Sent
from jobspec_engine.pools import CONNECT_TIMEOUT, AsyncPool
from jobspec_engine.replay import Replay, Replayed, replaced_by
from jobspec_engine.statements import Statements, drive_async, fetch_async
from jobspec_engine.target import require_supported

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import timedelta
    from types import TracebackType

    from psycopg import AsyncConnection

    from jobspec import CompiledJobs
    from jobspec_engine.replay import DeadLetters, ReplayOptions


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
        self._single = Coalescer(self._send_own, after=self._wake)
        self._due = False

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
        async with self._pool.using(connection) as used:
            return (await self._send(used, [prepared]))[0]

    async def send_many(
        self, events: Iterable[Event], *, connection: AsyncConnection[Any] | None = None
    ) -> list[Sent]:
        """Send events as one: all are kept, or none. As `Client.send_many`."""
        given = list(events)
        if len(given) > CHUNK:
            return await self._send_chunks(given, connection)
        batch = [prepare(event, self._jobs) for event in given]
        if connection is not None:
            async with self._pool.using(connection) as used:
                return await self._send(used, batch)
        sent = await self._send_own(batch)
        await self._wake()
        return sent

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
        if connection is not None:
            async with self._pool.using(connection) as used:
                return added(job_id, await fetch_async(used, call))
        async with self._pool.using() as own:
            told = added(job_id, await fetch_async(own, call))
        self._due = True
        await self._wake()
        return told

    async def cancel(
        self, run_id: int, *, connection: AsyncConnection[Any] | None = None
    ) -> Cancelled:
        """Ask a run to end. As `Client.cancel`."""
        async with self._pool.using(connection) as used:
            return (await drive_async(used, cancel(self._statements, [run_id])))[0]

    async def cancel_by_key(
        self,
        job_id: str,
        *,
        idempotency_key: str | None = None,
        job_key: str | None = None,
        connection: AsyncConnection[Any] | None = None,
    ) -> list[Cancelled]:
        """Ask the runs of a job to end that go by a key. As `Client.cancel_by_key`."""
        steps = cancel_by_key(self._statements, job_id, idempotency_key, job_key)
        async with self._pool.using(connection) as used:
            return await drive_async(used, steps)

    async def pause(self, job_id: str) -> bool:
        """Pause a job on all workers. As `Client.pause`."""
        async with self._pool.using() as own:
            return bool(await fetch_async(own, self._statements.pause(job_id)))

    async def resume(self, job_id: str) -> bool:
        """Let a paused job go on. As `Client.resume`."""
        async with self._pool.using() as own:
            resumed = bool(await fetch_async(own, self._statements.resume(job_id)))
            await fetch_async(own, self._statements.wake())
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
        async with self._pool.using() as own:
            for run_ids in await drive_async(own, replay.runs(which)):
                async with own.transaction():
                    replayed += await drive_async(own, replay.send(run_ids))
        self._due = True
        await self._wake()
        return replayed

    async def _send_own(self, batch: Sequence[Prepared]) -> list[Sent]:
        async with self._pool.using() as own:
            sent = await self._send(own, batch, wake=False)
        self._due = self._due or due_now(sent)
        return sent

    async def _wake(self) -> None:
        """Wake sleeping workers, once for all that was committed since the last time."""
        if not self._due:
            return
        self._due = False
        with suppress(psycopg.OperationalError):  # committed already; polling finds the runs
            async with self._pool.using() as own:
                await fetch_async(own, self._statements.wake())

    async def _send_chunks(
        self, events: Sequence[Event], connection: AsyncConnection[Any] | None
    ) -> list[Sent]:
        @again_after_deadlock(unless=connection is not None)
        async def send_all() -> list[Sent]:
            async with self._pool.using(connection) as used:
                if not used.autocommit:
                    await used.execute("select")  # as in client.py
                async with used.transaction():
                    return await drive_async(
                        used, exchange_chunks(events, self._jobs, self._statements)
                    )

        sent = await send_all()
        if connection is not None and due_now(sent):
            await fetch_async(connection, self._statements.wake())
        elif connection is None:
            self._due = self._due or due_now(sent)
            await self._wake()
        return sent

    async def _send(
        self, connection: AsyncConnection[Any], batch: Sequence[Prepared], *, wake: bool = True
    ) -> list[Sent]:
        together = connection.transaction() if needs_own(connection, batch) else nullcontext()
        async with together:
            sent = await drive_async(connection, exchange(batch, self._statements))
        if wake and due_now(sent):
            await fetch_async(connection, self._statements.wake())
        return sent
