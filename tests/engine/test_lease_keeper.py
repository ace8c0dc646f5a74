"""The keeper of leases: renews what is held, from a thread of its own, and tells what was lost."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from enginekit import PATIENCE, SQL, claim, job, run_of, runs, send, until
from jobspec_engine.leases import LeaseKeeper
from jobspec_engine.rows import Held

LEASE = timedelta(seconds=30)
SHORT = timedelta(milliseconds=500)


class Losses:
    def __init__(self):
        self.lost = []
        self.reasons = []
        self.news = threading.Event()

    def __call__(self, held, reason):
        self.lost += held
        self.reasons.append(reason)
        self.news.set()


def test_the_keeper_renews_what_it_holds_and_tells_what_was_lost(dsn, connection):
    send(dsn, job(), {}, {}, {})
    token, losses = uuid4(), Losses()
    kept, lost, dropped = [
        Held(run.run_id, token) for run in claim(connection, token=token, lease=SHORT)
    ]
    with LeaseKeeper(dsn, SQL, SHORT, losses, pytest.fail) as keeper:
        for held in (kept, lost, dropped):
            keeper.hold([held], time.monotonic())
        keeper.drop([dropped])
        before = {run.id: run.lease_until for run in runs(connection)}
        until(lambda: runs(connection)[0].lease_until > before[kept.run_id], "a renewal")
        connection.execute(
            "update jobspec.job_queue set lease_token = gen_random_uuid() where id = %s",
            [lost.run_id],
        )
        assert losses.news.wait(PATIENCE)
        at_loss = runs(connection)
        until(lambda: runs(connection)[0].lease_until > at_loss[0].lease_until, "a renewal")
        after = runs(connection)
    assert losses.lost == [lost]
    assert after[1].lease_until == at_loss[1].lease_until
    assert after[2].lease_until == before[dropped.run_id]


def test_the_keeper_tells_an_old_lease_of_a_run_from_the_new_one(dsn, connection):
    """A worker that was frozen may reclaim a run of its own, and then holds both."""
    send(dsn, job())
    old, losses = Held(claim(connection)[0].run_id, uuid4()), Losses()
    new = Held(old.run_id, run_of(connection).lease_token)
    with LeaseKeeper(dsn, SQL, SHORT, losses, pytest.fail) as keeper:
        keeper.hold([old], time.monotonic())
        keeper.hold([new], time.monotonic())
        assert losses.news.wait(PATIENCE)
        before = run_of(connection).lease_until
        until(lambda: run_of(connection).lease_until > before, "a renewal")
    assert losses.lost == [old]
    assert losses.reasons == ["another worker has it"]  # known long before the lease runs out


def test_a_locked_row_costs_no_other_run_its_lease(dsn, connection):
    """And the locked one is given up only when its own time is over."""
    send(dsn, job(), {}, {})
    token, losses = uuid4(), Losses()
    claimed = claim(connection, token=token, lease=SHORT)
    locked, free = [Held(run.run_id, token) for run in claimed]
    with (
        psycopg.connect(dsn) as locking,
        LeaseKeeper(dsn, SQL, SHORT, losses, pytest.fail) as keeper,
    ):
        locking.execute("select from jobspec.job_queue where id = %s for update", [locked.run_id])
        since = time.monotonic()
        keeper.hold([locked], since)
        keeper.hold([free], since)
        before = runs(connection)[1].lease_until
        until(lambda: runs(connection)[1].lease_until > before + SHORT, "two renewals")
        assert losses.news.wait(PATIENCE)
        assert time.monotonic() - since >= SHORT.total_seconds()
        assert keeper.holds(free)
    assert losses.lost == [locked]


def test_a_row_that_was_locked_for_a_while_is_renewed_again(dsn, connection):
    send(dsn, job())
    token = uuid4()
    held = Held(claim(connection, token=token, lease=SHORT)[0].run_id, token)
    with LeaseKeeper(dsn, SQL, 4 * SHORT, pytest.fail, pytest.fail) as keeper:
        with psycopg.connect(dsn) as locking:
            locking.execute("select from jobspec.job_queue for update")
            keeper.hold([held], time.monotonic())
            keeper.renew_now()
            before = run_of(connection).lease_until
        until(lambda: run_of(connection).lease_until > before, "a renewal")
        assert keeper.holds(held)


def test_the_keeper_gives_a_lease_up_that_it_can_not_renew_in_its_time(dsn, connection):
    send(dsn, job())
    token, losses = uuid4(), Losses()
    held = Held(claim(connection, token=token)[0].run_id, token)
    connection.execute("alter table jobspec.job_queue rename to gone")
    with LeaseKeeper(dsn, SQL, SHORT, losses, pytest.fail) as keeper:
        keeper.hold([held], time.monotonic())
        assert losses.news.wait(PATIENCE)
    assert losses.lost == [held]


def test_a_lease_is_held_for_sure_only_in_the_time_since_it_was_asked_for(dsn, connection):
    """Whoever was frozen between a claim and its answer must not take the lease for a new one."""
    held, forgotten = Held(1, uuid4()), Held(2, uuid4())
    keeper = LeaseKeeper(dsn, SQL, LEASE, pytest.fail, pytest.fail)
    keeper.hold([held], time.monotonic())
    assert keeper.holds(held)
    assert not keeper.holds(forgotten)
    keeper.hold([held], time.monotonic() - LEASE.total_seconds())
    assert not keeper.holds(held)
