"""Runs that are asked to end: those that wait at once, others when their worker hears of it."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from enginekit import (
    PATIENCE,
    SQL,
    Gate,
    claim,
    complete,
    dead_letters,
    fail,
    job,
    jobs,
    release,
    run_of,
    run_until_idle,
    runs,
    until_async,
    working,
)
from jobspec_engine import AsyncClient, Cancelled, Client
from jobspec_engine.calls import fetch

LEASE = timedelta(milliseconds=1500)
WHILE_ACTIVE = {"idempotency": {"key": "event.data.key", "window": "while-active"}}


def send(client, **data):
    (sent,) = client.send("event", data).jobs
    return sent


@pytest.fixture
def client(dsn):
    with Client(job(), dsn) as client:
        yield client


@pytest.fixture
def active(dsn):
    """A client of a job whose key counts while its run is active."""
    with Client(job(**WHILE_ACTIVE), dsn, max_connections=16) as client:
        yield client


# --- runs that wait


async def test_a_run_that_waits_has_ended_at_once_and_never_runs(client, dsn, clock, connection):
    sent = send(client)
    clock.advance(5)
    assert client.cancel(sent.run_id) == Cancelled(sent.run_id, "cancelled")
    run = run_of(connection)
    assert (run.state, run.finished_at) == ("cancelled", clock.now())
    await run_until_idle(job(), dsn)
    assert run_of(connection) == run
    assert not dead_letters(connection)


def test_a_run_that_waits_for_its_retry_ends_at_once(client, connection):
    sent = send(client)
    (run,) = claim(connection, token=(token := uuid4()))
    fail(connection, run, token)
    assert client.cancel(sent.run_id).outcome == "cancelled"
    assert run_of(connection).state == "cancelled"


def test_a_run_that_has_ended_is_left_alone(client, connection):
    sent = send(client)
    client.cancel(sent.run_id)
    ended = run_of(connection)
    assert client.cancel(sent.run_id).outcome == "ended"
    assert run_of(connection) == ended


def test_a_run_that_does_not_exist_is_unknown(client):
    assert client.cancel(404) == Cancelled(404, "unknown")


# --- runs that are running


async def test_a_running_handler_is_cancelled_by_a_wake_up(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    long = timedelta(hours=1)  # no heartbeat comes in time to tell
    async with AsyncClient(compiled, dsn) as client, working(compiled, dsn, name="w", lease=long):
        for _ in range(2):  # when it begins to listen, a worker looks whether it missed one
            (sent,) = (await client.send("event", {})).jobs
            await gate.next()
            assert (await client.cancel(sent.run_id)).outcome == "requested"
            await until_async(lambda: runs(connection)[-1].state == "cancelled")
    run = runs(connection)[-1]
    assert gate.left == ["cancelled"] * 2
    assert (run.attempt, run.lease_token, run.finished_at is not None) == (1, None, True)
    (entry,) = run.errors
    assert (entry["attempt"], entry["worker"], entry["error"]) == (1, "w", "cancelled")
    assert not dead_letters(connection)


async def test_a_running_handler_is_cancelled_within_a_heartbeat_without_wake_ups(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    with Client(compiled, dsn) as client:
        sent = send(client)
        at_work = asyncio.create_task(run_until_idle(compiled, dsn, lease=LEASE))  # listens to none
        await gate.next()
        client.cancel(sent.run_id)
        await at_work
    assert gate.left == ["cancelled"]
    assert run_of(connection).state == "cancelled"


async def test_what_a_sync_handler_returns_after_its_run_was_cancelled_is_dropped(dsn, connection):
    entered, release, ended = (threading.Event() for _ in range(3))

    def handler(context):
        entered.set()
        release.wait(PATIENCE)
        ended.set()
        return "too late"

    compiled = job(handler=handler)
    with Client(compiled, dsn) as client:
        sent = send(client)
        at_work = asyncio.create_task(run_until_idle(compiled, dsn, lease=LEASE))
        await until_async(entered.is_set)
        client.cancel(sent.run_id)
        await at_work
    release.set()
    assert ended.wait(PATIENCE)
    assert (run_of(connection).state, run_of(connection).result) == ("cancelled", None)


async def cancelled_while_running(dsn, handler):
    """Cancel the run of a handler that sets `handler.entered`; return when all is idle."""
    compiled = job(handler=handler)
    with Client(compiled, dsn) as client:
        sent = send(client)
        at_work = asyncio.create_task(run_until_idle(compiled, dsn, lease=LEASE))
        await asyncio.wait_for(handler.entered.wait(), PATIENCE)
        client.cancel(sent.run_id)
        await at_work


class OnCancel:
    """A handler that waits, and does something of its own when it is cancelled."""

    def __init__(self, then):
        self.entered = asyncio.Event()
        self.then = then

    async def __call__(self, _):
        self.entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return self.then()


async def test_a_handler_that_fails_when_it_is_cancelled_is_not_retried(dsn, connection):
    def then():
        raise RuntimeError("no clean end")

    await cancelled_while_running(dsn, OnCancel(then))
    run = run_of(connection)
    assert (run.state, run.errors[0]["error"]) == ("cancelled", "RuntimeError: no clean end")
    assert not dead_letters(connection)


async def test_a_handler_that_finishes_all_the_same_has_finished(dsn, connection):
    await cancelled_while_running(dsn, OnCancel(lambda: "done after all"))
    assert (run_of(connection).state, run_of(connection).result) == ("completed", "done after all")


# --- what its worker, or the next one, then does ends the run


def reclaim(connection, run, token):
    connection.execute("update jobspec.job_queue set lease_until = '2000-01-01'")
    return fetch(connection, SQL.reclaim(5, 100))


@pytest.mark.parametrize("give_back", [fail, release, reclaim])
def test_a_run_that_was_asked_to_end_is_cancelled_whatever_gives_it_back(
    active, clock, connection, give_back
):
    sent = send(active, key="k")
    (run,) = claim(connection, token=(token := uuid4()))
    assert active.cancel(sent.run_id).outcome == "requested"
    assert send(active, key="k").outcome == "duplicate"
    clock.advance(1)
    assert active.cancel(sent.run_id).outcome == "requested"
    assert give_back(connection, run, token)
    ended = run_of(connection)
    assert (ended.state, ended.attempt, ended.finished_at) == ("cancelled", 1, clock.now())
    assert ended.cancel_requested_at == clock.START
    assert not dead_letters(connection)
    assert send(active, key="k").outcome == "enqueued"


@pytest.mark.parametrize("give_back", [fail, release])
def test_a_worker_that_lost_its_lease_can_not_cancel_the_run(client, connection, give_back):
    sent = send(client)
    (run,) = claim(connection)
    client.cancel(sent.run_id)
    assert not give_back(connection, run, uuid4())
    assert run_of(connection).state == "running"


def test_a_run_that_completes_before_its_worker_hears_of_it_is_completed(client, connection):
    sent = send(client)
    (run,) = claim(connection, token=(token := uuid4()))
    client.cancel(sent.run_id)
    assert complete(connection, run, token)
    assert run_of(connection).state == "completed"


def test_by_constraint_a_run_that_was_asked_to_end_is_never_ready_again(client, connection):
    sent = send(client)
    claim(connection)
    client.cancel(sent.run_id)
    with pytest.raises(psycopg.errors.CheckViolation, match="job_queue_cancel_holds"):
        connection.execute(
            "update jobspec.job_queue set state = 'pending', lease_token = null, lease_until = null"
        )


# --- by key


def test_the_run_of_an_idempotency_key_is_cancelled(dsn, connection):
    with Client(job(idempotency="event.data.key"), dsn) as client:
        sent = send(client, key="k")
        send(client, key="l")
        assert client.cancel_by_key("job", idempotency_key="k") == [
            Cancelled(sent.run_id, "cancelled")
        ]
    assert [run.state for run in runs(connection)] == ["cancelled", "pending"]


def test_the_runs_of_a_job_key_are_cancelled_also_the_running_one(client, connection):
    options = {"job_key": "k"}
    running = client.add_job("job", {}, **options)
    claim(connection)
    waiting = client.add_job("job", {}, **options)
    client.add_job("job", {}, job_key="l")
    assert client.cancel_by_key("job", job_key="k") == [
        Cancelled(running.run_id, "requested"),
        Cancelled(waiting.run_id, "cancelled"),
    ]
    assert [run.state for run in runs(connection)] == ["running", "cancelled", "pending"]


def test_the_burst_of_a_debounce_key_is_cancelled_and_the_next_event_starts_a_new_one(dsn):
    with Client(job(debounce={"period": "1m", "key": "event.data.key"}), dsn) as client:
        sent = send(client, key="k")
        assert client.cancel_by_key("job", job_key="k") == [Cancelled(sent.run_id, "cancelled")]
        assert send(client, key="k").outcome == "enqueued"


def test_an_idempotency_key_is_that_of_one_job(dsn, connection):
    once = {"idempotency": "event.data.key"}
    with Client(jobs(one=once, other=once), dsn) as client:
        first, _ = client.send("event", {"key": "k"}).jobs
        assert client.cancel_by_key("one", idempotency_key="k") == [
            Cancelled(first.run_id, "cancelled")
        ]


def test_a_key_of_another_job_or_of_no_run_cancels_nothing(client, connection):
    client.add_job("job", {}, job_key="k")
    assert client.cancel_by_key("other", job_key="k") == []
    assert client.cancel_by_key("job", job_key="l") == []
    assert client.cancel_by_key("job", idempotency_key="k") == []
    assert run_of(connection).state == "pending"


@pytest.mark.parametrize("keys", [{}, {"idempotency_key": "k", "job_key": "k"}])
def test_one_key_is_needed(client, keys):
    with pytest.raises(ValueError, match="either idempotency_key or job_key"):
        client.cancel_by_key("job", **keys)


async def test_the_async_client_cancels_by_key_too(dsn, connection):
    async with AsyncClient(job(), dsn) as client:
        added = await client.add_job("job", {}, job_key="k")
        told = await client.cancel_by_key("job", job_key="k")
    assert told == [Cancelled(added.run_id, "cancelled")]


# --- keys and transactions


def test_a_cancelled_run_frees_the_key_that_counts_while_it_is_active(active):
    first = send(active, key="k")
    assert send(active, key="k").outcome == "duplicate"
    active.cancel(first.run_id)
    assert send(active, key="k").outcome == "enqueued"


def test_a_cancelled_run_keeps_a_key_that_counts_for_good(dsn):
    with Client(job(idempotency="event.data.key"), dsn) as client:
        first = send(client, key="k")
        client.cancel(first.run_id)
        assert send(client, key="k").outcome == "duplicate"


def test_a_cancellation_rolls_back_with_the_caller_s_transaction(client, dsn, connection):
    sent = send(client)
    with psycopg.connect(dsn) as own:
        assert client.cancel(sent.run_id, connection=own).outcome == "cancelled"
        own.rollback()
    assert run_of(connection).state == "pending"


def test_plain_sql_cancels_runs_too(client, connection):
    run_ids = [send(client).run_id for _ in range(2)]
    told = connection.execute("select * from jobspec.cancel(%s)", [[*run_ids, 404]]).fetchall()
    assert told == [(run_id, "cancelled") for run_id in run_ids]
