"""Through the real PgBouncer."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from enginekit import EMAIL, Gate, job, runs, until_async, working
from jobspec_engine import AsyncClient, Client, Event
from jobspec_engine.calls import Call, fetch, first
from jobspec_engine.database import set_up_session
from jobspec_engine.own_connections import OwnConnection
from pooling import pgbouncer

SILENT = "no wake-up comes through the connection pooler"


@pytest.fixture
def pooled_dsn(dsn):
    """This test's database through PgBouncer in transaction mode."""
    with pgbouncer(dsn, "transaction") as through:
        yield through


async def test_a_worker_polls_and_runs_all_in_transaction_mode(pooled_dsn, connection, caplog):
    compiled = job(idempotency=EMAIL["idempotency"])
    async with working(compiled, pooled_dsn), AsyncClient(compiled, pooled_dsn) as client:
        for n in range(20):
            await client.send("event", {"idempotencyKey": n})
            await client.send("event", {"idempotencyKey": n})
        await until_async(lambda: [run.state for run in runs(connection)] == ["completed"] * 20)
        await until_async(lambda: SILENT in caplog.text, "a line in the log")
    assert caplog.text.count(SILENT) == 1
    assert "can't be reached" not in caplog.text


async def test_a_lease_is_renewed_through_a_pooler(pooled_dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    with Client(compiled, pooled_dsn) as client:
        client.send("event", {})
    async with working(compiled, pooled_dsn, lease=timedelta(seconds=1)):
        await gate.next()
        lease_until = runs(connection)[0].lease_until
        await until_async(lambda: runs(connection)[0].lease_until > lease_until, "a heartbeat")
        gate.open.set()


async def test_wake_ups_come_through_in_session_mode(dsn, caplog):
    gate = Gate()
    compiled = job(handler=gate)
    with pgbouncer(dsn, "session") as through:
        async with working(compiled, through, poll=timedelta(hours=1)):
            with psycopg.connect(dsn, autocommit=True) as connection:
                await until_async(lambda: listening(connection))
            with Client(compiled, dsn) as client:
                client.send("event", {})
            await gate.next()
            gate.open.set()
    assert SILENT not in caplog.text


def listening(connection):
    query = "select true from pg_stat_activity where query like 'listen%%' and datname = %s"
    return connection.execute(query, [connection.info.dbname]).fetchone()


def test_nothing_is_prepared_through_a_pooler(pooled_dsn):
    with psycopg.connect(pooled_dsn, autocommit=True) as pooled:
        assert set_up_session(pooled)
        for _ in range(10):
            pooled.execute("select 1 where %s", [True])
        assert pooled.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)


@pytest.mark.parametrize("how_many", [1, 2_500])
async def test_sends_go_through_a_pooler_and_each_is_told_of(pooled_dsn, connection, how_many):
    events = [
        Event("email.send", {"idempotencyKey": n, "text": "x" * 1_000}) for n in range(how_many)
    ]
    with Client(job("email.send", event="email.send", **EMAIL), pooled_dsn) as client:
        keyed = client.send_many(events)
    async with AsyncClient(job("email.send", event="email.send"), pooled_dsn) as client:
        plain = await client.send_many(events)
    told = [one.jobs[0].run_id for one in keyed + plain]
    assert told == [run.id for run in runs(connection)]


def test_a_statement_that_only_another_session_of_a_pooler_knows_is_executed_anew(pooled_dsn):
    with OwnConnection.connect(pooled_dsn, autocommit=True) as pooled:
        pooled.prepare_threshold = 0  # as through a pooler that passes for a server
        call = Call(b"select pg_backend_pid()", {}, first)
        sessions = fetch(pooled, call)
        with psycopg.connect(pooled_dsn) as other:  # in a transaction, it has that session
            other.execute("select")
            sessions += fetch(pooled, call)
    assert len(set(sessions)) == 2
