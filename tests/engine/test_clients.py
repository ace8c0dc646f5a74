"""Clients: bulk, other people's connections, processes that send the same event."""

from __future__ import annotations

import asyncio
import tracemalloc

import psycopg
import pytest
import sqlalchemy
from psycopg import AsyncConnection
from sqlalchemy.ext.asyncio import create_async_engine

from databases import processes_together, together
from enginekit import count, job, run_of, run_until_idle, runs, sqlalchemy_url
from jobspec import EventError
from jobspec_engine import AsyncClient, Client, Event

KEYED = job(idempotency="event.data.key")


@pytest.fixture
def small_chunks(monkeypatch):
    """Have two events a statement."""
    monkeypatch.setattr("jobspec_engine.bulk.CHUNK", 2)


def outcomes(sent):
    return [one.jobs[0].outcome for one in sent]


def test_100_000_events_go_in_one_call_each_with_its_result(dsn, connection):
    events = [Event("event", {"key": n % 90_000}, id=f"e{n}") for n in range(100_000)]
    with Client(KEYED, dsn) as client:
        sent = client.send_many(events)
    assert outcomes(sent) == ["enqueued"] * 90_000 + ["duplicate"] * 10_000
    assert [one.event_id for one in sent] == [event.id for event in events]
    assert sent[90_000].jobs[0].run_id == sent[0].jobs[0].run_id
    assert count(connection, "job_queue") == 90_000


def test_a_bulk_takes_memory_for_one_chunk_of_it(dsn, monkeypatch):
    monkeypatch.setattr("jobspec_engine.bulk.CHUNK", 100)
    events = [Event("event", {"key": n, "text": "x" * 1000}) for n in range(3_000)]
    with Client(KEYED, dsn) as client:
        tracemalloc.start()
        sent = client.send_many(events)
        results, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert len(sent) == 3_000
    assert peak - results < 100 * 10_000


@pytest.mark.usefixtures("small_chunks")
def test_a_bad_event_far_behind_undoes_the_whole_bulk(dsn, connection):
    events = [Event("event", {"key": n}) for n in range(5)]
    with Client(KEYED, dsn) as client, pytest.raises(EventError):
        client.send_many([*events, Event("", {})])
    assert count(connection, "job_event") == count(connection, "job_queue") == 0


@pytest.mark.usefixtures("small_chunks")
def test_a_bad_event_in_a_bulk_leaves_the_caller_s_transaction_usable(dsn, connection):
    with Client(KEYED, dsn) as client, psycopg.connect(dsn) as sending:
        client.send("event", {"key": "before"}, connection=sending)
        with pytest.raises(EventError):
            client.send_many([Event("event", {})] * 4 + [Event("", {})], connection=sending)
        client.send("event", {"key": "after"}, connection=sending)
    assert [run.state for run in runs(connection)] == ["pending"] * 2


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("as_of_the_caller", [False, True])
async def test_an_async_bulk_is_told_event_by_event_alike(dsn, connection, as_of_the_caller):
    events = [Event("event", {"key": n % 3}, id=f"e{n}") for n in range(5)]
    async with AsyncClient(KEYED, dsn) as client:
        if as_of_the_caller:
            async with await AsyncConnection.connect(dsn) as sending:
                sent = await client.send_many(events, connection=sending)
                assert count(connection, "job_queue") == 0
        else:
            sent = await client.send_many(events)
    assert outcomes(sent) == ["enqueued"] * 3 + ["duplicate"] * 2
    assert count(connection, "job_queue") == 3


@pytest.mark.usefixtures("small_chunks")
def test_bulks_that_meet_in_opposite_order_both_go_through(dsn, connection):
    """Each statement locks in order; several of them may deadlock, and are tried again."""
    events = [Event("event", {"key": n}, id=f"e{n}") for n in range(60)]
    with Client(KEYED, dsn) as client:
        for _ in range(3):
            connection.execute(
                "truncate jobspec.job_event, jobspec.job_queue, jobspec.job_idempotency cascade"
            )
            told = together(
                lambda: client.send_many(events), lambda: client.send_many(events[::-1])
            )
            assert sorted(outcomes(told[0] + told[1])) == ["duplicate"] * 60 + ["enqueued"] * 60
    assert count(connection, "job_queue") == 60


SEND = """
import sys
sys.path[:0] = sys.argv[2].split(":")
from enginekit import job
from jobspec_engine import Client
with Client(job(), sys.argv[1]) as client:
    print([client.send("event", {"n": n}, id=f"order-{n}").jobs[0].run_id for n in range(50)])
"""


def test_an_event_s_id_deduplicates_it_over_processes(dsn, connection):
    import sys

    told = processes_together(SEND, *[(dsn, ":".join(sys.path))] * 3)
    assert len(set(told)) == 1
    assert count(connection, "job_event") == count(connection, "job_queue") == 50


@pytest.mark.parametrize("commits", [True, False])
def test_a_send_is_part_of_a_transaction_of_sqlalchemy(dsn, connection, commits):
    engine = sqlalchemy.create_engine(sqlalchemy_url(dsn))
    with Client(KEYED, dsn) as client, engine.connect() as own:
        own.execute(sqlalchemy.text("create table orders (id int)"))
        client.send("event", {"key": 1}, connection=own.connection.driver_connection)
        assert count(connection, "job_queue") == 0
        if commits:
            own.commit()
        else:
            own.rollback()
    engine.dispose()
    kept = connection.execute("select to_regclass('orders')").fetchone()[0] is not None
    assert (kept, count(connection, "job_queue")) == (commits, int(commits))


async def test_a_send_is_part_of_an_async_transaction_of_sqlalchemy(dsn, connection):
    engine = create_async_engine(sqlalchemy_url(dsn))
    async with AsyncClient(KEYED, dsn) as client, engine.begin() as own:
        raw = await own.get_raw_connection()
        await client.send("event", {"key": 1}, connection=raw.driver_connection)
        assert count(connection, "job_queue") == 0
    await engine.dispose()
    assert count(connection, "job_queue") == 1


async def test_what_an_async_transaction_sent_runs_only_when_that_commits(dsn, connection):
    async with AsyncClient(KEYED, dsn) as client, await AsyncConnection.connect(dsn) as sending:
        await client.send("event", {"key": 1}, connection=sending)
        await client.add_job("job", {"key": 2}, connection=sending)
        await run_until_idle(KEYED, dsn)
        assert runs(connection) == []
        await sending.rollback()
        await client.send("event", {"key": 1}, connection=sending)
        await sending.commit()
        await run_until_idle(KEYED, dsn)
    assert run_of(connection).state == "completed"


async def test_concurrent_sends_of_one_event_make_one_run(dsn, connection):
    async with AsyncClient(KEYED, dsn) as client:
        told = await asyncio.gather(
            *(client.send("event", {"key": 1}, id="one") for _ in range(50))
        )
    assert len({sent.jobs[0].run_id for sent in told}) == 1
    assert count(connection, "job_queue") == 1
