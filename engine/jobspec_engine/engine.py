"""The front door: compiled jobs and a database, to send events and to work."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Self, Unpack

from jobspec_engine.async_client import AsyncClient
from jobspec_engine.migrate import migrate
from jobspec_engine.pools import CONNECT_TIMEOUT
from jobspec_engine.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from jobspec import CompiledJobs
    from jobspec_engine.add_job import AddJobOptions
    from jobspec_engine.events import Dispatched, Event, Sent
    from jobspec_engine.replay import Replayed, ReplayOptions
    from jobspec_engine.retention import Retention
    from jobspec_engine.rows import Cancelled, DeadLetters


class Engine:
    """Compiled jobs on one database.

        async with Engine(jobspec.compile("jobs.yaml"), dsn) as engine:
            await engine.send("email.send", {"idempotencyKey": "welcome-42"})
            await engine.worker().run(until_idle=True)

    The tables live in `schema`; `migrate()` makes them. What is sent waits for a connection no
    longer than `connect_timeout`.
    """

    def __init__(
        self,
        jobs: CompiledJobs,
        dsn: str,
        *,
        schema: str = "jobspec",
        connect_timeout: timedelta = CONNECT_TIMEOUT,
    ) -> None:
        self.jobs = jobs
        self.dsn = dsn
        self.schema = schema
        self._client = AsyncClient(jobs, dsn, schema=schema, connect_timeout=connect_timeout)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.close()

    def migrate(self) -> None:
        """Bring the schema to this version. Raises `MigrationError` when that can't be done."""
        migrate(self.dsn, schema=self.schema)

    async def send(
        self,
        name: str,
        data: Mapping[str, object],
        *,
        id: str | None = None,  # noqa: A002  it is the event's id to everybody
        ts: int | None = None,
    ) -> Sent:
        """Send one event, as `AsyncClient.send` does."""
        return await self._client.send(name, data, id=id, ts=ts)

    async def send_many(self, events: Iterable[Event]) -> list[Sent]:
        """Send events as one, as `AsyncClient.send_many` does."""
        return await self._client.send_many(events)

    async def add_job(
        self,
        job_id: str,
        payload: Mapping[str, object] | None = None,
        **options: Unpack[AddJobOptions],
    ) -> Dispatched:
        """Add a run of a job without an event, as `AsyncClient.add_job` does."""
        return await self._client.add_job(job_id, payload, **options)

    async def cancel(self, run_id: int) -> Cancelled:
        """Ask a run to end, as `AsyncClient.cancel` does."""
        return await self._client.cancel(run_id)

    async def cancel_by_key(
        self, job_id: str, *, idempotency_key: str | None = None, job_key: str | None = None
    ) -> list[Cancelled]:
        """Ask the runs of a job to end that go by a key, as `AsyncClient.cancel_by_key` does."""
        return await self._client.cancel_by_key(
            job_id, idempotency_key=idempotency_key, job_key=job_key
        )

    async def pause(self, job_id: str) -> bool:
        """Pause a job on all workers, as `AsyncClient.pause` does."""
        return await self._client.pause(job_id)

    async def resume(self, job_id: str) -> bool:
        """Let a paused job go on, as `AsyncClient.resume` does."""
        return await self._client.resume(job_id)

    async def replay(self, run_id: int, data: Mapping[str, object] | None = None) -> Replayed:
        """Send a run again that ended without success, as `AsyncClient.replay` does."""
        return await self._client.replay(run_id, data)

    async def replay_many(
        self, which: Iterable[int] | DeadLetters, **options: Unpack[ReplayOptions]
    ) -> list[Replayed]:
        """Send runs again, as `AsyncClient.replay_many` does."""
        return await self._client.replay_many(which, **options)

    def worker(
        self,
        *,
        concurrency: int = 100,
        limits: Mapping[str, int] | None = None,
        lease: timedelta = timedelta(seconds=30),
        poll: timedelta = timedelta(seconds=1),
        max_refunds: int = 5,
        retention: Retention | None = None,
        name: str | None = None,
    ) -> Worker:
        """Return a worker for all jobs, to be `run` once. Takes what `Worker` takes."""
        return Worker(
            self.jobs,
            self.dsn,
            schema=self.schema,
            concurrency=concurrency,
            limits=limits,
            lease=lease,
            poll=poll,
            max_refunds=max_refunds,
            retention=retention,
            name=name,
        )
