"""Sends that the database undoes or loses: tried again under the same ids, told of as they were."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from psycopg import AsyncConnection

from databases import end_client_lines
from enginekit import count, jobs, run_of, runs
from jobspec_engine import AsyncClient, Client, Event, calls
from jobspec_engine.errors import UnreachableError
from jobspec_engine.persistence import Persistence
from stepkit import run

COMPILED = jobs(
    plain={"event": "plain"},
    once={"event": "once", "idempotency": "event.data.key"},
    later={"event": "later", "debounce": {"period": "1m"}},
    dead={"event": "dead", "idempotency": "event.data.a + event.data.a"},
)
DATA = {"key": "k", "a": None}
EVENTS = [Event(name, DATA) for name in ("plain", "once", "once", "later", "later", "dead")]
SHORT = timedelta(milliseconds=200)
OUTCOMES = ["enqueued", "enqueued", "duplicate", "enqueued", "coalesced", "dead-letter"]

UNDO = "raise exception 'undone' using errcode = '{}';"
DIE = "perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(60);"


@pytest.fixture
def client(dsn):
    with Client(COMPILED, dsn) as client:
        yield client


def at_first(connection, table, happens, times=1):
    """Let something happen to the first transactions that write rows of a table."""
    connection.execute("create sequence fate")  # not undone with a transaction
    connection.execute(
        "create function fate() returns trigger language plpgsql as"
        f" $$ begin if nextval('fate') <= {times} then {happens} end if; return null; end $$"
    )
    connection.execute(
        f"create trigger fate after insert or update on jobspec.{table}"
        " for each statement execute function fate()"
    )


def outcomes(sent):
    return [one.jobs[0].outcome for one in sent]


@pytest.mark.parametrize("fate", [UNDO.format("40P01"), UNDO.format("40001"), DIE])
@pytest.mark.parametrize("events", [EVENTS[:1], EVENTS, EVENTS * 300])
def test_a_send_that_is_undone_or_lost_is_sent_again(client, connection, fate, events):
    at_first(connection, "job_event", fate, times=2)
    sent = client.send_many(events)
    assert outcomes(sent)[:6] == OUTCOMES[: len(events)]
    assert count(connection, "job_event") == len(events)


@pytest.mark.parametrize("fate", [UNDO.format("40P01"), UNDO.format("40001"), DIE])
async def test_concurrent_async_sends_are_sent_again_alike(dsn, connection, fate):
    at_first(connection, "job_event", fate, times=2)
    async with AsyncClient(COMPILED, dsn) as client:
        told = await client.send("plain", {})
        sent = await client.send_many(EVENTS)
    assert outcomes([told, *sent]) == ["enqueued", *OUTCOMES]


def lose_answer(monkeypatch, to):
    """Lose the line once behind the commit of a statement."""
    fetch, lost = calls.fetch, []

    def losing(connection, call):
        rows = fetch(connection, call)
        if not lost and f"-- {to}".encode() in call.query:
            lost.append(call)
            connection.close()
            raise psycopg.OperationalError("the line was lost")
        return rows

    monkeypatch.setattr(calls, "fetch", losing)


@pytest.mark.parametrize("at", range(len(EVENTS)), ids=[f"{n}-{o}" for n, o in enumerate(OUTCOMES)])
def test_an_event_that_was_committed_when_the_line_was_lost_is_told_of_as_it_was(
    client, connection, monkeypatch, at
):
    for event in EVENTS[:at]:
        client.send(event.name, event.data)
    lose_answer(monkeypatch, "Keep events")
    (job,) = client.send(EVENTS[at].name, EVENTS[at].data).jobs
    assert job.outcome == OUTCOMES[at]
    assert count(connection, "job_event") == at + 1
    (run,) = connection.execute(
        "select id, run_at from jobspec.job_queue where job_id = %s", [job.job_id]
    ).fetchall()
    assert job.run_id == run[0]
    assert job.run_at in (None, run[1])


def test_an_event_whose_id_its_sender_chose_may_be_a_duplicate_of_its_own(
    client, connection, monkeypatch
):
    """Whether somebody else sent it is not known: it is told of as what it is now."""
    lose_answer(monkeypatch, "Keep events")
    (job,) = client.send("plain", {}, id="mine").jobs
    assert (job.outcome, job.run_id) == ("duplicate", run_of(connection).id)


def test_a_send_that_somebody_cancels_is_not_sent_again(client, connection):
    at_first(connection, "job_event", UNDO.format("57014"))
    with pytest.raises(psycopg.errors.QueryCanceled):
        client.send("plain", {})
    assert count(connection, "job_event") == 0


def test_a_send_that_is_lost_each_time_says_so_in_the_end(client, connection, monkeypatch):
    monkeypatch.setattr("jobspec_engine.database._LONGEST_PAUSE", 0)
    at_first(connection, "job_event", DIE, times=100)
    with pytest.raises(psycopg.OperationalError):
        client.send("plain", {})
    assert connection.execute("select last_value from fate").fetchone()[0] == 10


def test_a_database_that_is_not_there_is_waited_for_once():
    nowhere = Client(COMPILED, "host=127.0.0.1 port=1", connect_timeout=SHORT)
    with nowhere, pytest.raises(UnreachableError):
        nowhere.send("plain", {})


@pytest.mark.parametrize(
    ("table", "call"),
    [
        ("job_queue", lambda client, run_id: client.cancel(run_id)),
        ("job_queue", lambda client, _: client.cancel_by_key("once", idempotency_key="k")),
        ("job_event", lambda client, _: client.add_job("plain", job_key="key")),
    ],
    ids=["cancel", "cancel_by_key", "add_job"],
)
@pytest.mark.parametrize("sqlstate", ["40P01", "40001"])
def test_other_calls_are_made_again_alike(client, connection, table, call, sqlstate):
    (sent,) = client.send("once", DATA).jobs
    at_first(connection, table, UNDO.format(sqlstate), times=2)
    assert call(client, sent.run_id)
    assert connection.execute("select last_value from fate").fetchone()[0] == 3


def test_a_replay_is_made_again_alike(client, connection):
    (dead,) = client.send("dead", DATA).jobs
    at_first(connection, "job_event", UNDO.format("40P01"), times=2)
    assert client.replay(dead.run_id, {"a": 1}).outcome == "enqueued"
    assert [run.state for run in runs(connection)] == ["failed", "pending"]


def test_a_transaction_of_the_caller_s_is_not_begun_again(client, dsn, connection):
    at_first(connection, "job_event", UNDO.format("40P01"))
    with psycopg.connect(dsn) as sending, pytest.raises(psycopg.errors.DeadlockDetected):
        client.send("plain", {}, connection=sending)
    assert count(connection, "job_event") == 0


async def test_nor_is_one_of_an_async_caller_s(dsn, connection):
    at_first(connection, "job_event", UNDO.format("40P01"))
    async with AsyncClient(COMPILED, dsn) as client, await AsyncConnection.connect(dsn) as sending:
        with pytest.raises(psycopg.errors.DeadlockDetected):
            await client.send("plain", {}, connection=sending)
        await sending.rollback()
    assert count(connection, "job_event") == 0


@pytest.mark.parametrize("call", ["add_job", "cancel", "replay"])
def test_a_line_that_was_ended_while_nobody_used_it_fails_no_call(client, connection, call):
    run_id = client.send("plain", DATA).jobs[0].run_id
    client._wake.close()
    assert end_client_lines(connection)
    getattr(client, call)("plain" if call == "add_job" else run_id)


async def test_nor_a_call_of_an_async_client(dsn, connection):
    async with AsyncClient(COMPILED, dsn) as client:
        await client.send("plain", DATA)
        assert end_client_lines(connection)
        assert (await client.add_job("plain")).outcome == "enqueued"


async def test_a_step_that_sent_its_event_when_the_line_was_lost_goes_on(
    dsn, connection, monkeypatch
):
    once, lost = Persistence._transact_once, []

    async def losing(database, transaction):
        told = await once(database, transaction)
        if not lost:
            lost.append(told)
            raise psycopg.OperationalError("the line was lost")
        return told

    async def handler(context):
        return (await context.step.send_event("tell", {})).event_id

    monkeypatch.setattr(Persistence, "_transact_once", losing)
    await run(dsn, handler)
    assert (run_of(connection).state, len(lost)) == ("completed", 1)
    assert count(connection, "job_event") == 2
