"""A database that is away for longer than leases last, for one worker or for all of them.

What ended meanwhile waits in the worker, no more than it had claimed before. Its end is recorded
when the database is back, unless the run was reclaimed first: then it runs again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from enginekit import dead_letters, job, runs, until_async, working
from jobspec_engine import Client, Event, NonRetriable
from proof.cutting import Cutter
from proof.report import attack

RUNS = 60
AT_ONCE = 40
LONG, SHORT = timedelta(minutes=5), timedelta(seconds=1)
EXPIRED = "select bool_and(lease_until < now()) from jobspec.job_queue where state = 'running'"


class Work:
    """Runs that end well, for good or in a sleep, each kind a third, and only when they may."""

    def __init__(self):
        self.entered = Counter()
        self.may_end = asyncio.Event()

    async def __call__(self, context):
        number = context.event.data["n"]
        self.entered[number] += 1
        await self.may_end.wait()
        if number % 3 == 1:
            raise NonRetriable("as planned")
        if number % 3 == 2:
            await context.step.sleep("long", timedelta(hours=1))

    def all_at_work(self):
        return self.entered.total() == AT_ONCE


@pytest.fixture
def line(dsn):
    with Cutter(dsn) as line:
        yield line


@pytest.fixture
def row():
    with attack("an outage: ends that wait for the database") as row:
        yield row


def sent(dsn, compiled, numbers):
    with Client(compiled, dsn) as client:
        client.send_many([Event("event", {"n": n}, f"e{n}") for n in numbers])


def ends(connection):
    """Return how many runs are in each state, those that sleep for an hour as `asleep`."""
    return Counter(
        connection.execute(
            "select case when state = 'pending' and run_at > now() + interval '30 minutes'"
            " then 'asleep' else state end from jobspec.job_queue"
        ).fetchall()
    )


ALL_ENDED = Counter({("completed",): RUNS // 3, ("failed",): RUNS // 3, ("asleep",): RUNS // 3})


def waiting_ends(worker):
    return len(worker._recorder._waiting) + worker._recorder._under_way


def holds_nothing(worker):
    return worker._recorder.idle and not worker._keeper._renewed_at and not worker._slots.held


def count(row, connection, entered, most):
    """Hold that each run has the one end that it must have, and was entered so often at most."""
    row.cases += RUNS
    row.stuck += (ALL_ENDED - ends(connection)).total()
    row.doubled += sum(times > most for times in entered.values())
    assert len(dead_letters(connection)) == RUNS // 3
    assert max(entered.values()) <= most
    assert {run.attempt for run in runs(connection) if run.state == "completed"} == {1}


@asynccontextmanager
async def cut_off(dsn, line, lease):
    """Give a worker that has just been cut off while all slots were at work, and may end that."""
    work = Work()
    compiled = job(handler=work)
    sent(dsn, compiled, range(RUNS))
    async with working(compiled, line.dsn, lease=lease, concurrency=AT_ONCE) as worker:
        await until_async(work.all_at_work, "all slots at work")
        line.go_down()
        work.may_end.set()
        yield worker, work, compiled


@pytest.mark.parametrize(("lease", "most"), [(LONG, 1), (SHORT, 2)], ids=["kept", "run out"])
async def test_what_ended_while_the_database_was_away_is_recorded_when_it_is_back(
    dsn, connection, line, row, lease, most
):
    """Only who lost his lease is entered again."""
    async with cut_off(dsn, line, lease) as (at_work, work, _):
        await until_async(lambda: waiting_ends(at_work) >= AT_ONCE * 2 // 3 - 1, "their ends")
        if lease == SHORT:
            await until_async(lambda: connection.execute(EXPIRED).fetchone()[0], "lost leases")
        assert waiting_ends(at_work) <= AT_ONCE
        line.go_up()
        await until_async(lambda: ends(connection) == ALL_ENDED, "the end of all runs")
        await until_async(lambda: holds_nothing(at_work), "the end of what it held")
    count(row, connection, work.entered, most)


async def test_a_worker_that_was_away_leaves_what_others_have_ended_meanwhile(
    dsn, connection, line, row
):
    async with (
        cut_off(dsn, line, SHORT) as (away, work, compiled),
        working(compiled, dsn, lease=LONG, name="there"),
    ):
        await until_async(lambda: ends(connection) == ALL_ENDED, "the end of all runs")
        line.go_up()
        await until_async(lambda: holds_nothing(away), "the end of what it held")
    assert {run.claimed_by for run in runs(connection)} == {"there"}
    count(row, connection, work.entered, 2)
