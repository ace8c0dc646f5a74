"""A container supervised by a worker that is killed, and by one that takes over."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from examples.database import database
from examples.supervisor.calls import request
from examples.supervisor.supervise import jobs
from jobspec_engine import Engine, Worker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LEASE = timedelta(seconds=1)


async def main(dsn: str) -> None:
    provider, address = await start("examples.supervisor.provider")
    async with Engine(jobs(), dsn) as engine:
        event_id = str(uuid4())
        await control(address, done_after=10**6)
        data = {"provider": address, "limits": {"pause": 0.05}}
        await engine.send("container.requested", data, id=event_id)

        worker, _ = await start("examples.supervisor", "worker", dsn)
        await until(partial(has_read, address, event_id))
        worker.send_signal(signal.SIGKILL)
        await worker.wait()
        print("the worker was killed while it watched the container")

        await control(address, done_after=0)
        other = Worker(jobs(), dsn, lease=LEASE, poll=LEASE / 10)
        working = asyncio.create_task(other.run())
        await until(partial(has_done, address, event_id, "slot released"))
        other.stop()
        await working
        print("another one took over: " + ", ".join(await done(address, event_id)))
    provider.terminate()
    await provider.wait()


async def start(module: str, *arguments: str) -> tuple[asyncio.subprocess.Process, str]:
    """Start a Python process; return it when it has printed its first line, and that."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdout=asyncio.subprocess.PIPE, env=os.environ
    )
    if process.stdout is None:
        raise RuntimeError("it has a pipe")
    return process, (await process.stdout.readline()).decode().strip()


async def control(address: str, **attributes: float) -> None:
    await request(address, "PUT", "/control", attributes)


async def done(address: str, key: str) -> list[str]:
    """Return what the provider has done for a key."""
    _, told = await request(address, "GET", "/log")
    return [what for what, of in told["log"] if of == key]


async def has_done(address: str, key: str, what: str) -> bool:
    return what in await done(address, key)


async def has_read(address: str, key: str) -> bool:
    """Tell whether the container was read."""
    _, told = await request(address, "GET", "/log")
    return bool(told["reads"].get(key))


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what another process does."""
    while not await condition():  # noqa: ASYNC110  it gives no signal
        await asyncio.sleep(0.05)


async def work(dsn: str) -> None:
    print("working", flush=True)
    await Worker(jobs(), dsn, lease=LEASE).run()


if __name__ == "__main__":
    logging.disable()  # the worker tells of the run that it takes over
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(work(sys.argv[2]))
    else:
        with database() as dsn:
            asyncio.run(main(dsn))
