"""A service: concurrent tasks send events, a worker in the same process runs what they start."""

from __future__ import annotations

import asyncio
import signal
from uuid import uuid4

import jobspec
from examples.database import database
from jobspec_engine import Context, Engine

ORDERS = 20
handled: asyncio.Queue[int] = asyncio.Queue()
registry = jobspec.Registry()


@registry.job(
    id="order.confirm",
    triggers=["order.placed"],
    idempotency="event.data.session + '/' + event.data.order",
)
async def confirm(context: Context) -> None:
    await handled.put(int(context.event.data["order"]))


async def place(engine: Engine, session: str, order: int) -> str:
    """Place an order, as a request handler would. Concurrent sends share a statement."""
    sent = await engine.send("order.placed", {"session": session, "order": str(order)})
    return sent.jobs[0].outcome


async def main(dsn: str) -> None:
    session = str(uuid4())
    async with Engine(jobspec.compile(registry), dsn) as engine:
        worker = engine.worker()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        working = asyncio.create_task(worker.run())

        # Each order is placed twice: people press a button again.
        placed = (place(engine, session, order) for order in [*range(ORDERS), *range(ORDERS)])
        outcomes = await asyncio.gather(*placed)
        print(f"{outcomes.count('enqueued')} enqueued, {outcomes.count('duplicate')} duplicates")

        confirmed = [await handled.get() for _ in range(ORDERS)]
        print(f"{len(set(confirmed))} orders confirmed")

        worker.stop()
        await working
    print("stopped")


if __name__ == "__main__":
    with database() as dsn:
        asyncio.run(main(dsn))
