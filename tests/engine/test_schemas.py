"""Two engines in two schemas of one database, and names that a schema may not have."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

from enginekit import job, until_async, worker
from jobspec_engine import Client
from jobspec_engine.access import KINDS, role_of
from jobspec_engine.calls import drive
from jobspec_engine.migrate import NAME_LIMIT, migrate
from jobspec_engine.retention import Retention, prune
from jobspec_engine.upkeep_statements import UpkeepStatements

ODD = 'Other "one"; --'


@pytest.fixture
def both(dsn):
    """A database with a second engine in it."""
    migrate(dsn, ODD)
    return dsn


def states(connection, schema):
    query = sql.SQL("select state from {}.job_queue order by id").format(sql.Identifier(schema))
    return [state for (state,) in connection.execute(query)]


async def test_events_keys_and_runs_of_one_schema_are_not_those_of_another(both, connection):
    compiled = job(idempotency="event.data.key", debounce={"period": "1h"})
    outcomes = []
    for schema in ("jobspec", ODD):
        with Client(compiled, both, schema=schema) as client:
            sent = [client.send("event", {"key": 1}, id="e") for _ in range(2)]
            outcomes += [one.jobs[0].outcome for one in sent]
    assert outcomes == ["enqueued", "duplicate"] * 2
    assert states(connection, "jobspec") == states(connection, ODD) == ["pending"]


async def test_a_worker_of_one_schema_runs_its_own_runs_and_no_others(both, connection):
    compiled = job()
    for schema in ("jobspec", ODD):
        with Client(compiled, both, schema=schema) as client:
            client.send("event", {})
            client.add_job("job")
    await worker(compiled, both, schema=ODD).run(until_idle=True)
    assert states(connection, ODD) == ["completed"] * 2
    assert states(connection, "jobspec") == ["pending"] * 2


async def test_a_wake_up_reaches_the_workers_of_its_schema_alone(both, connection):
    compiled = job()
    polls = {"poll": timedelta(hours=1)}
    ours, others = worker(compiled, both, **polls), worker(compiled, both, schema=ODD, **polls)
    tasks = [asyncio.create_task(one.run()) for one in (ours, others)]
    woken = {ours: 0, others: 0}

    def counting(one, woken_by):
        def told(text):
            woken[one] += 1
            woken_by(text)

        return told

    for one in (ours, others):
        one._woken = counting(one, one._woken)
    await until_async(lambda: min(woken.values()) == 1)  # each listens
    with Client(compiled, both, schema=ODD) as client:
        client.send("event", {})
        client.cancel(client.add_job("job", delay=timedelta(days=1)).run_id)
    await until_async(lambda: states(connection, ODD) == ["completed", "cancelled"])
    connection.execute("select pg_notify('jobspec.wake', '')")
    await until_async(lambda: woken[ours] == 2)
    assert woken[others] >= 2
    for one in (ours, others):
        one.stop()
    await asyncio.gather(*tasks)


async def test_pausing_and_pruning_one_schema_leave_the_other_alone(both, connection):
    compiled = job()
    for schema in ("jobspec", ODD):
        with Client(compiled, both, schema=schema) as client:
            client.send("event", {})
    with Client(compiled, both, schema=ODD) as client:
        client.pause("job")
    for schema in ("jobspec", ODD):
        await worker(compiled, both, schema=schema).run(until_idle=True)
    assert (states(connection, "jobspec"), states(connection, ODD)) == (["completed"], ["pending"])
    drive(connection, prune(Retention(runs=timedelta(0)), UpkeepStatements(ODD)))
    assert states(connection, "jobspec") == ["completed"]
    drive(connection, prune(Retention(runs=timedelta(0)), UpkeepStatements()))
    assert states(connection, "jobspec") == []


async def test_a_schema_with_the_longest_name_there_may_be_works(empty_dsn):
    longest = "x" * NAME_LIMIT
    migrate(empty_dsn, longest)
    compiled = job()
    with Client(compiled, empty_dsn, schema=longest) as client:
        run_id = client.send("event", {}).jobs[0].run_id
        client.cancel(run_id)
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("select {}.add_job('job')").format(sql.Identifier(longest)))
        assert states(connection, longest) == ["cancelled", "pending"]
    assert max(len(role_of(kind, longest)) for kind in KINDS) == 63  # what Postgres has for a name
