"""jobspec as a contestant of the race of Postgres job queues: everything at its defaults.

The harness wants this file as `contestants/jobspec.py`; see docs/performance.md.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

import psycopg
from contestants.base import QUEUE, Contestant, OnJob

import jobspec
import jobspec_engine
from jobspec_engine import AsyncClient, Event, Worker
from jobspec_engine.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Sequence


async def one() -> int:
    return 1


def jobs(on_job: OnJob, steps: int = 0) -> jobspec.CompiledJobs:
    registry = jobspec.Registry()

    @registry.job(id=QUEUE, triggers=[QUEUE])
    async def noop(context: jobspec_engine.Context) -> None:
        if steps:
            on_job.started()  # type: ignore[attr-defined]  # where steps are timed, it is there
        for _ in range(steps):
            await context.step.run("step", one)
        on_job(context.event.data["value"])

    @registry.job(id="keyed", triggers=["keyed"], idempotency="event.data.key")
    async def keyed(context: jobspec_engine.Context) -> None:
        on_job(context.event.data["value"])

    @registry.job(
        id="debounced",
        triggers=["debounced"],
        debounce={"key": "event.data.key", "period": "1m", "timeout": "15m"},
    )
    async def debounced(context: jobspec_engine.Context) -> None:
        on_job(context.event.data["value"])

    return jobspec.compile(registry)


class Jobspec(Contestant):
    distribution = "jobspec-kit"
    steps = 0  # of each run, where the workload asks for some
    settings: ClassVar[dict[str, object]] = {}
    pending_sql = (
        "select count(*) from jobspec.job_queue"
        " where state in ('pending', 'running') and run_at <= now()"
    )

    async def install(self) -> None:
        migrate(self.url)

    async def open(self) -> None:
        self.client = await AsyncClient(jobs(lambda _: None), self.url).__aenter__()

    async def close(self) -> None:
        await self.client.close()

    async def enqueue(self, value: int) -> None:
        await self.client.send(QUEUE, {"value": value})

    async def enqueue_bulk(self, values: Sequence[int]) -> None:
        await self.client.send_many(Event(QUEUE, {"value": value}) for value in values)

    async def enqueue_later(self, values: Sequence[int], seconds: int) -> None:
        """Written in SQL: an event has no delay, and one call of add_job a run takes too long."""
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            await connection.execute(
                "select jobspec.add_job(%s, json_build_object('value', n), delay => %s)"
                " from generate_series(1, %s) as n",
                [QUEUE, timedelta(seconds=seconds), len(values)],
            )

    async def enqueue_keyed(self, key: str, value: int) -> None:
        await self.client.send("keyed", {"key": key, "value": value})

    async def enqueue_debounced(self, key: str, value: int) -> None:
        """What graphile-worker's `replace` does; the harness has no workload for it."""
        await self.client.send("debounced", {"key": key, "value": value})

    async def work(self, on_job: OnJob, stop: asyncio.Event) -> None:
        worker = Worker(jobs(on_job, self.steps), self.url)
        running = asyncio.create_task(worker.run())
        await stop.wait()
        worker.stop()
        await running


CONTESTANT = Jobspec
