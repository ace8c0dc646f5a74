"""Leases: held by whoever claimed, renewed while that lives, lost with all rights, reclaimed."""

from __future__ import annotations

import asyncio
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
    count,
    dead_letters,
    fail,
    job,
    release,
    run_of,
    run_until_idle,
    send,
    until,
    until_async,
    working,
)
from jobspec_engine import Client
from jobspec_engine.calls import fetch
from jobspec_engine.leases import LeaseKeeper
from jobspec_engine.rows import Held, Renewed, Suspension
from jobspec_engine.step_statements import MemoWrite, StepStatements

LEASE = timedelta(seconds=30)
SHORT = timedelta(milliseconds=500)


def reclaim(connection, max_refunds=5, limit=100):
    return [one.state for one in fetch(connection, SQL.reclaim(max_refunds, limit))]


def heartbeat(connection, run, token, lease=LEASE):
    return fetch(connection, SQL.heartbeat([Held(run.run_id, token)], lease))


# The statements


def test_a_claim_holds_a_run_under_a_lease_until_its_time(dsn, clock, connection):
    send(dsn, job())
    token = uuid4()
    (claimed,) = claim(connection, token=token, lease=LEASE)
    run = run_of(connection)
    assert (run.state, run.attempt, claimed.attempt) == ("running", 1, 1)
    assert (run.lease_token, run.lease_until) == (token, clock.START + LEASE)
    assert (run.first_claimed_at, run.claimed_by) == (clock.START, "test")
    assert claim(connection) == []


def test_a_heartbeat_extends_the_lease(dsn, clock, connection):
    send(dsn, job())
    token = uuid4()
    (run,) = claim(connection, token=token)
    later = clock.advance(20)
    renewed = Renewed(run.run_id, token, cancel_requested=False, extended=True)
    assert heartbeat(connection, run, token) == [renewed]
    assert run_of(connection).lease_until == later + LEASE
    clock.advance(20)
    assert reclaim(connection) == []


def test_a_heartbeat_tells_a_run_that_is_locked_from_one_that_is_lost(dsn, connection):
    send(dsn, job(), {}, {})
    token = uuid4()
    locked, lost = claim(connection, token=token)
    with psycopg.connect(dsn) as locking:
        locking.execute("select from jobspec.job_queue where id = %s for update", [locked.run_id])
        told = fetch(
            connection,
            SQL.heartbeat([Held(locked.run_id, token), Held(lost.run_id, uuid4())], LEASE),
        )
    assert told == [Renewed(locked.run_id, token, cancel_requested=False, extended=False)]


def test_a_run_whose_lease_ran_out_is_ready_again_with_its_attempt_unused(dsn, clock, connection):
    send(dsn, job())
    claim(connection)
    clock.advance(LEASE)
    assert reclaim(connection) == []
    now = clock.advance(timedelta(microseconds=1))
    assert reclaim(connection) == ["pending"]
    run = run_of(connection)
    assert (run.attempt, run.refunds, run.run_at) == (0, 1, now)
    assert (run.lease_token, run.lease_until) == (None, None)
    assert run.first_claimed_at == clock.START
    (again,) = claim(connection)
    assert again.attempt == 1


@pytest.mark.parametrize(("max_refunds", "attempt", "passes"), [(5, 0, 1), (0, 1, 0)])
def test_passes_are_counted_anew_where_a_reclaim_uses_up_the_attempt(
    dsn, clock, connection, max_refunds, attempt, passes
):
    send(dsn, job())
    claim(connection)
    clock.advance(2 * LEASE)
    assert reclaim(connection, max_refunds) == ["pending"]
    assert (run_of(connection).attempt, run_of(connection).passes) == (attempt, passes)


def test_what_a_worker_remembers_under_a_lease_that_it_lost_and_took_again_is_not_kept(
    dsn, connection
):
    send(dsn, job())
    (run,) = claim(connection, token=(token := uuid4()))
    writes = [
        MemoWrite(run.run_id, one, "", name, 1, 1, "run", "done", result="1")
        for one, name in ((uuid4(), "stale"), (token, "fresh"))
    ]
    kept = fetch(connection, StepStatements().remember(writes))
    assert [row.memo.key.name for row in kept] == ["fresh"]


@pytest.mark.parametrize(("entered", "at"), [(True, 7), (False, 0)])
def test_a_run_that_is_given_back_keeps_its_place_only_if_it_was_not_entered(
    dsn, clock, connection, entered, at
):
    send(dsn, job())
    (run,) = claim(connection, token=(token := uuid4()))
    clock.advance(7)
    assert fetch(connection, SQL.release([Suspension(run.run_id, token, entered=entered)]))
    assert run_of(connection).run_at == clock.START + timedelta(seconds=at)


@pytest.mark.parametrize(("finish", "until"), [(None, 3600), (600, 600), (7200, 3600)])
def test_a_wait_is_cut_where_the_run_will_have_lasted_for_its_time(
    dsn, clock, connection, finish, until
):
    send(dsn, job())
    (run,) = claim(connection, token=(token := uuid4()))
    finish = finish and timedelta(seconds=finish)
    wait = Suspension(run.run_id, token, clock.START + timedelta(hours=1), finish)
    assert fetch(connection, SQL.release([wait]))
    assert run_of(connection).run_at == clock.START + timedelta(seconds=until)


def test_a_signal_is_heard_by_the_pass_in_which_it_came_and_by_none_after(dsn, clock, connection):
    send(dsn, job())
    for signalled, at in ((True, clock.START), (False, clock.START + timedelta(hours=1))):
        (run,) = claim(connection, token=(token := uuid4()))
        if signalled:
            connection.execute("update jobspec.job_queue set signalled = true")
        wait = Suspension(run.run_id, token, clock.START + timedelta(hours=1))
        assert fetch(connection, SQL.release([wait]))
        assert run_of(connection).run_at == at


@pytest.mark.parametrize("write", [complete, fail, heartbeat, release])
def test_whoever_lost_a_lease_can_write_nothing(dsn, clock, connection, write):
    send(dsn, job())
    token = uuid4()
    (run,) = claim(connection, token=token)
    clock.advance(2 * LEASE)
    reclaim(connection)
    reclaimed = run_of(connection)
    assert write(connection, run, token) == []
    assert run_of(connection) == reclaimed
    claim(connection)
    claimed_again = run_of(connection)
    assert write(connection, run, token) == []
    assert run_of(connection) == claimed_again
    assert not dead_letters(connection)


def test_of_two_fenced_writes_of_one_lease_the_second_does_nothing(dsn, connection):
    send(dsn, job())
    token = uuid4()
    (run,) = claim(connection, token=token)
    assert complete(connection, run, token, "1") == [run.run_id]
    assert complete(connection, run, token, "2") == []
    assert fail(connection, run, token, None) == []
    assert run_of(connection).result == 1


def test_a_lease_that_ran_out_and_was_not_reclaimed_still_holds(dsn, clock, connection):
    """Nobody else had the run, so nothing is lost by ending it."""
    send(dsn, job())
    token = uuid4()
    (run,) = claim(connection, token=token)
    clock.advance(10 * LEASE)
    assert complete(connection, run, token) == [run.run_id]


def test_a_reclaim_skips_a_run_that_is_being_completed(dsn, clock, connection):
    send(dsn, job())
    token = uuid4()
    (run,) = claim(connection, token=token)
    clock.advance(2 * LEASE)
    with psycopg.connect(dsn) as completing:
        complete(completing, run, token)
        assert reclaim(connection) == []
    assert run_of(connection).state == "completed"


def test_a_reclaim_takes_no_more_than_its_limit(dsn, clock, connection):
    send(dsn, job(), {}, {}, {})
    claim(connection)
    clock.advance(2 * LEASE)
    assert [len(reclaim(connection, limit=2)) for _ in range(3)] == [2, 1, 0]


def test_a_run_that_kills_its_workers_time_and_again_ends_as_a_dead_letter(dsn, clock, connection):
    """Two refunds, then its two attempts are used up."""
    send(dsn, job(retries=1))
    states, attempts = [], []
    for _ in range(4):
        (run,) = claim(connection)
        attempts.append(run.attempt)
        clock.advance(2 * LEASE)
        states += reclaim(connection, max_refunds=2)
    assert attempts == [1, 1, 1, 2]
    assert states == ["pending", "pending", "pending", "failed"]
    (dead,) = dead_letters(connection)
    assert (dead.reason, dead.run_id) == ("crash-loop", run.run_id)
    assert "last test" in dead.message
    assert claim(connection) == []


def test_the_history_of_a_crash_loop_tells_which_workers_died(dsn, clock, connection):
    with Client(job(retries=1), dsn) as client:
        client.send("event", {})
    names = [f"worker-{n}" for n in range(4)]
    for n, name in enumerate(names):
        clock.advance(2 * LEASE)
        fetch(connection, SQL.claim(("job",), 1, LEASE, f"{n:032x}", name))
        clock.advance(2 * LEASE)
        fetch(connection, SQL.reclaim(2, 100))
    run = run_of(connection)
    assert [(entry["worker"], entry["attempt"]) for entry in run.errors] == [
        ("worker-0", 1),
        ("worker-1", 1),
        ("worker-2", 1),
        ("worker-3", 2),
    ]
    assert {entry["error"] for entry in run.errors} == {
        "the worker died or froze: its lease ran out"
    }
    assert run.errors[0]["started_at"] < run.errors[0]["ended_at"] < run.errors[1]["started_at"]
    (dead,) = dead_letters(connection)
    assert (dead.reason, run.state) == ("crash-loop", "failed")
    assert "worker-3" in dead.message


def test_an_error_after_refunds_counts_as_the_one_attempt_that_it_is(dsn, clock, connection):
    send(dsn, job(retries=1))
    for _ in range(3):
        claim(connection)
        clock.advance(2 * LEASE)
        reclaim(connection)
    token = uuid4()
    (run,) = claim(connection, token=token)
    assert run.attempt == 1
    assert fail(connection, run, token) == [run.run_id]
    clock.advance(60)
    assert claim(connection)[0].attempt == 2


# The worker


async def test_a_worker_reclaims_what_another_left_behind(dsn, clock, connection):
    gate = Gate()
    gate.open.set()
    compiled = job(handler=gate)
    send(dsn, compiled)
    claim(connection, lease=LEASE)
    async with working(compiled, dsn):
        clock.advance(LEASE + timedelta(seconds=1))
        await until_async(lambda: run_of(connection).state == "completed")
    assert (run_of(connection).attempt, run_of(connection).refunds) == (1, 1)


async def test_a_worker_reclaims_when_it_starts(dsn, clock, connection):
    compiled = job()
    send(dsn, compiled)
    claim(connection, lease=LEASE)
    clock.advance(LEASE + timedelta(seconds=1))
    await run_until_idle(compiled, dsn)
    assert run_of(connection).state == "completed"


async def test_a_handler_that_blocks_the_event_loop_keeps_its_lease(dsn, connection):
    renewals = []

    async def handler(context):
        with psycopg.connect(dsn, autocommit=True) as watching:
            first = run_of(watching).lease_until
            until(lambda: run_of(watching).lease_until >= first + 2 * SHORT, "the renewals")
        renewals.append(first)

    compiled = job(handler=handler)
    send(dsn, compiled)
    async with working(compiled, dsn, lease=SHORT), asyncio.timeout(PATIENCE):
        await until_async(lambda: run_of(connection).state == "completed")
    assert len(renewals) == 1
    assert (run_of(connection).attempt, run_of(connection).refunds) == (1, 0)


async def test_a_worker_that_lost_its_lease_leaves_the_handler_and_records_nothing(
    dsn, clock, connection
):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled)
    async with working(compiled, dsn, lease=SHORT, poll=timedelta(hours=1)):
        await gate.next()
        clock.advance(60)
        assert reclaim(connection) == ["pending"]
        (other,) = claim(connection, token=(token := uuid4()), lease=timedelta(hours=1))
        await until_async(lambda: gate.left, "the end of the pass")
        held = run_of(connection)
        assert (held.state, held.lease_token) == ("running", token)
    assert gate.left == ["cancelled"]
    assert run_of(connection) == held
    assert complete(connection, other, token) == [other.run_id]


async def test_a_pass_whose_lease_was_lost_can_not_complete_the_run(dsn, clock, connection):
    """The handler ends before its worker hears of the loss."""
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled)
    hour = timedelta(hours=1)
    # No slot is free meanwhile, so this worker can't be the one that claims the run again.
    async with working(compiled, dsn, lease=hour, poll=hour, concurrency=1) as at_work:
        await gate.next()
        clock.advance(timedelta(hours=2))
        reclaim(connection)
        claim(connection, token=(token := uuid4()), lease=timedelta(hours=9))
        gate.open.set()
        await until_async(lambda: not at_work._entries, "the end of the pass")
    assert gate.left == ["let through"]
    assert (run_of(connection).state, run_of(connection).lease_token) == ("running", token)
    assert run_of(connection).result is None


async def test_a_worker_that_reclaims_a_run_of_its_own_ends_the_old_pass_and_keeps_the_new(
    dsn, connection
):
    """As after being frozen: the lease is out, and the reclaim comes before the heartbeat."""
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled)
    async with working(compiled, dsn, lease=SHORT):
        await gate.next()
        connection.execute("update jobspec.job_queue set lease_until = '2000-01-01'")
        fetch(connection, SQL.reclaim(5, 10))
        second = await gate.next()
        await until_async(lambda: gate.left, "the end of the old pass")
        before = run_of(connection)
        await until_async(lambda: run_of(connection).lease_until >= before.lease_until + SHORT)
        assert (run_of(connection).lease_token, second.attempt) == (before.lease_token, 1)
        gate.open.set()
        await until_async(lambda: run_of(connection).state == "completed")
    assert gate.left == ["cancelled", "let through"]
    assert count(connection, "job_dead_letter") == 0


async def test_a_worker_that_was_frozen_since_its_claim_enters_no_handler(
    dsn, connection, monkeypatch
):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled)
    monkeypatch.setattr(LeaseKeeper, "holds", lambda *_: False)
    await run_until_idle(compiled, dsn)
    assert gate.entered.empty()
    assert run_of(connection).state == "running"


async def test_a_worker_until_idle_ends_when_a_pass_broke(dsn, connection, monkeypatch):
    compiled = job()
    send(dsn, compiled)

    async def breaks(*_):
        raise ValueError("the pass")

    monkeypatch.setattr("jobspec_engine.worker.attempt", breaks)
    await run_until_idle(compiled, dsn)
    assert run_of(connection).state == "running"
