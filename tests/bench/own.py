"""jobspec at its defaults, behind the same calls as the floor."""

from __future__ import annotations

import asyncio

import jobspec
from jobspec_engine import AsyncClient, Event, Worker


class Own:
    """A client, and a worker for each call that wants one."""

    def __init__(self, dsn):
        self._dsn = dsn
        self._on_job = None
        self._steps = 0
        self._jobs = self._compiled()

    async def __aenter__(self):
        self._client = await AsyncClient(self._jobs, self._dsn).__aenter__()
        return self

    async def __aexit__(self, *failure):
        await self._client.close()

    async def send(self, value):
        await self._client.send("noop", {"value": value})

    send_and_wake = send

    async def send_many(self, values):
        await self._client.send_many([Event("noop", {"value": value}) for value in values])

    async def send_once(self, key, value):
        await self._client.send("once", {"key": key, "value": value})

    async def send_latest(self, key, value):
        await self._client.send("latest", {"key": key, "value": value})

    async def drain(self, on_job):
        self._on_job = on_job
        await Worker(self._jobs, self._dsn).run(until_idle=True)

    async def work(self, on_job, stop):
        self._on_job = on_job
        worker = Worker(self._jobs, self._dsn)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run())
            await stop.wait()
            worker.stop()

    async def steps(self, count):
        """One run of so many steps."""
        self._steps = count
        await self._client.send("stepped", {})
        await Worker(self._jobs, self._dsn).run(until_idle=True)

    def _compiled(self):
        registry = jobspec.Registry()

        @registry.job(id="noop", triggers=["noop"])
        async def noop(context):
            self._on_job(context.event.data["value"])

        @registry.job(id="once", triggers=["once"], idempotency="event.data.key")
        async def once(context):
            self._on_job(context.event.data["value"])

        @registry.job(
            id="latest", triggers=["latest"], debounce={"key": "event.data.key", "period": "1m"}
        )
        async def latest(context):
            self._on_job(context.event.data["value"])

        @registry.job(id="stepped", triggers=["stepped"])
        async def stepped(context):
            for _ in range(self._steps):
                await context.step.run("one", lambda: 1)

        return jobspec.compile(registry)
