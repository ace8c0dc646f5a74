"""What steps cost: statements and rows read grow with the number of steps, not with its square."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from enginekit import SQL, job, run_of, run_until_idle, worker
from jobspec_engine import Client, persistence

LONG = timedelta(minutes=5)
NAMES = {
    query: name
    for name, query in SQL._queries.items()
    if name in ("claim", "memos", "remember", "remember_one", "release", "complete", "fail")
}


class Costs:
    """Counts the statements of a worker about runs and steps, and the rows that they return."""

    def __init__(self, execute):
        self._execute = execute
        self.counted = Counter()
        self.rows = 0
        self.after_suspension = lambda: None

    async def __call__(self, connection, call):
        rows = await self._execute(connection, call)
        if name := NAMES.get(call.query):
            self.counted[name] += 1
            self.rows += len(rows)
        if NAMES.get(call.query) == "release":
            self.after_suspension()
        return rows


@pytest.fixture
def costs(monkeypatch):
    """Count what workers execute."""
    counting = Costs(persistence.fetch_async)
    monkeypatch.setattr(persistence, "fetch_async", counting)
    return counting


def polls(number, pause):
    async def handler(context):
        for _ in range(number):
            await context.step.run("poll", poll)
            await context.step.sleep("pause", pause)
        return context.pass_number

    return job(handler=handler)


async def poll() -> str:
    return "booting"


def memos_read(connection):
    """Return how many rows of job_step the server has read by its indexes and otherwise."""
    (rows,) = connection.execute(
        "select coalesce(idx_tup_fetch, 0) + seq_tup_read from pg_stat_user_tables"
        " where relname = 'job_step'"
    ).fetchone()
    return rows


@pytest.mark.parametrize("number", [10, 100, 1000])
async def test_a_loop_of_polls_with_short_sleeps_takes_two_statements_each(
    dsn, connection, costs, number
):
    before = memos_read(connection)
    compiled = polls(number, timedelta(microseconds=1))
    with Client(compiled, dsn) as client:
        client.send("event", {})
    await run_until_idle(compiled, dsn)
    assert run_of(connection).result == 1
    claims = costs.counted.pop("claim")
    assert costs.counted == {"remember_one": 2 * number, "memos": 1, "complete": 1}
    assert claims <= 4
    assert costs.rows == 2 * number + 3
    assert memos_read(connection) == before


@pytest.mark.parametrize("number", [10, 100, 1000])
async def test_a_loop_of_polls_with_long_sleeps_reads_each_memo_once(
    dsn, clock, connection, costs, number
):
    """Each sleep is a pass, which reads what is new since the one before, not all there is."""
    before = memos_read(connection)
    compiled = polls(number, LONG)
    with Client(compiled, dsn) as client:
        client.send("event", {})
    costs.after_suspension = lambda: clock.advance(LONG)
    async with asyncio.timeout(240):  # a thousand passes take a while
        await worker(compiled, dsn).run(until_idle=True)
    assert run_of(connection).result == number + 1
    claims = costs.counted.pop("claim")
    assert costs.counted == {
        "remember_one": 2 * number,
        "release": number,
        "memos": number + 1,
        "complete": 1,
    }
    assert claims <= 3 * number + 4
    assert costs.rows <= 7 * number + 4
    assert memos_read(connection) - before <= 5 * number
