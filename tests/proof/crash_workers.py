"""Whole workers whose line may break: one from its start to its end, and one that stops at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import jobspec
from enginekit import PATIENCE, until_async, worker
from jobspec import Registry
from jobspec_engine import Client, Worker
from jobspec_engine.calls import drive
from jobspec_engine.cron import Crons
from jobspec_engine.retention import Retention, prune
from proof.crash_verbs import HOUR, database, old, verb
from proof.pair import LEASE, UPKEEP

HALF = timedelta(minutes=30)


def stepped(handler):
    """Return jobs: one of a handler, one that it may invoke, and one with a schedule."""
    registry = Registry()
    registry.job(id="stepped", triggers=["stepped"], retries=1)(handler)
    registry.job(id="plain", triggers=["plain"])(nothing)
    registry.job(id="tick", triggers=[{"cron": "0 * * * *", "missed": "once"}])(nothing)
    return jobspec.compile(registry)


async def nothing(context):
    """What the jobs do that have no steps."""


async def one_of_each(context):
    """Come to steps of every kind that does not wait for somebody else."""
    await context.step.run("work", nothing, None)
    await context.step.sleep("nap", timedelta(milliseconds=1))
    await context.step.send_event("plain", {})
    await context.step.invoke("plain", {})
    await context.step.sleep("night", timedelta(minutes=1))


def at_hand(world):
    """Have all that a worker does to be done: a run, a tick, and what is to be pruned."""
    old(world)
    jobs = stepped(one_of_each)
    database(world, lambda opened: opened.drive(Crons(jobs, UPKEEP).watch()))
    world.clock.advance(HOUR)
    with Client(jobs, world.dsn) as client:
        client.send("stepped", {}, id="stepped")


# The tick has a run, all runs have ended, and the worker is seen.
IS_DONE = """
    select count(*) filter (where job_id = 'tick') = 1 and bool_and(finished_at is not null)
        and exists (select from job_worker)
    from job_queue
"""
WAITS = "select from job_queue where state = 'pending' and run_at > jobspec.now()"


@verb(before=[at_hand])
def live(world):
    """A worker from its start to its end, which does all that a worker does.

    What it was never told that it had claimed it finds when the lease has run out; what it did not
    prune since somebody held it, the next one has.
    """
    retention = Retention(HALF, HALF, HALF, batch=5)
    late = [10 * LEASE]

    def is_done():
        if late and world.line.is_done.is_set():
            world.clock.advance(late.pop())
        if world.connection.execute(WAITS).fetchall():
            world.clock.advance(timedelta(minutes=1))
        return world.connection.execute(IS_DONE).fetchone()[0]

    async def lived():
        at_work = worker(stepped(one_of_each), world.line.dsn, lease=LEASE, retention=retention)
        running = asyncio.create_task(at_work.run())
        await until_async(is_done, "the end of its work")
        at_work.stop()
        await asyncio.wait_for(running, PATIENCE)

    world.arm()
    asyncio.run(lived())
    drive(world.connection, prune(retention, UPKEEP))


@verb()
def stop_at_once(world):
    """A worker that is told to stop while a handler is at work, and tries nothing twice then."""

    async def stopped():
        entered = asyncio.Event()

        async def waits(_):
            entered.set()
            await asyncio.Event().wait()

        jobs = stepped(waits)
        with Client(jobs, world.dsn) as client:
            client.send("stepped", {}, id="stepped")
        worker = Worker(jobs, world.line.dsn, lease=LEASE)
        running = asyncio.create_task(worker.run(until_idle=True))
        await asyncio.wait_for(entered.wait(), PATIENCE)
        world.arm()
        worker.stop(now=True)
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(stopped())
