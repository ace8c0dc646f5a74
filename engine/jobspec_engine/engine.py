"""The front door: compiled jobs and a database, to send events and to work."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Self

from jobspec_engine.async_client import AsyncClient
from jobspec_engine.migrate import migrate
from jobspec_engine.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from jobspec import CompiledJobs
    from jobspec_engine.events import Event, Sent
    from jobspec_engine.retention import Retention


class Engine:
    """Compiled jobs on one database.

        async with Engine(jobspec.compile("jobs.yaml"), dsn) as engine:
            await engine.send("email.send", {"idempotencyKey": "welcome-42"})
            await engine.worker().run(until_idle=True)

    The tables live in `schema`; `migrate()` makes them.
    """

    def __init__(self, jobs: CompiledJobs, dsn: str, *, schema: str = "jobspec") -> None:
        self.jobs = jobs
        self.dsn = dsn
        self.schema = schema
        self._client = AsyncClient(jobs, dsn, schema=schema)

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
