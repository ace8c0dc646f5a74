"""What a worker has claimed ahead, and then can't start: it keeps nothing from one that is idle."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from enginekit import job, runs, until_async, working
from jobspec_engine import Client, Event
from proof.report import attack

AT_ONCE, QUICK, ALL = 4, 200, 1_000
LONG = timedelta(hours=1)


class Slowing:
    """A handler that is quick for a while, and then stuck until it may end."""

    def __init__(self):
        self.entered, self.may_end = 0, asyncio.Event()

    async def __call__(self, _):
        self.entered += 1
        if self.entered > QUICK:
            await self.may_end.wait()


def completed(connection):
    return [run.state for run in runs(connection)].count("completed")


async def test_what_was_claimed_ahead_of_slow_runs_goes_to_a_worker_that_is_idle(dsn, connection):
    """Long before its lease runs out, and without being entered twice."""
    slowing = Slowing()
    with Client(job(), dsn) as client, attack("runs claimed ahead, behind slow ones") as row:
        client.send_many([Event("event", {}) for _ in range(ALL)])
        async with working(job(handler=slowing), dsn, concurrency=AT_ONCE, lease=LONG) as busy:
            await until_async(lambda: slowing.entered == QUICK + AT_ONCE, "a slow run in each slot")
            row.cases = busy._slots.held - AT_ONCE
            async with working(job(), dsn, name="idle", lease=LONG):
                await until_async(lambda: completed(connection) == ALL - AT_ONCE, "all the others")
            assert slowing.entered == QUICK + AT_ONCE
            assert busy._slots.held == AT_ONCE
            slowing.may_end.set()
    assert row.cases, "nothing was claimed ahead"
    ends = {(run.state, run.attempt, run.passes) for run in runs(connection)}
    assert ends == {("completed", 1, 1)}
