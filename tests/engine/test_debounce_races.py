"""Bursts under contention: senders among themselves, with claims, and in transactions."""

from __future__ import annotations

import random
import threading
from contextlib import closing
from functools import partial

import psycopg
import pytest

from burstkit import BOTH, BY_KEY, PERIOD, TIMEOUT, send, send_once
from databases import together
from enginekit import blocked, claim, count, job, run_of, runs, until
from jobspec_engine import Client, Event

ROUNDS = 200
SENDERS = 16


@pytest.fixture
def client(dsn, clock):
    with Client(job(**BY_KEY), dsn) as client:
        yield client


# Senders


def test_racing_senders_leave_one_run_of_the_latest_event_and_see_no_error(dsn, connection):
    with Client(job(**BY_KEY), dsn, max_connections=SENDERS) as client:
        for n in range(ROUNDS):
            stamps = random.sample(range(1_000, 9_000), SENDERS)
            sent = together(
                *(partial(send, client, f"k{n}", ts=ts, id=f"{n}/{ts}") for ts in stamps)
            )
            assert sorted(one.outcome for one in sent) == ["coalesced"] * 15 + ["enqueued"]
            run = runs(connection)[-1]
            assert {one.run_id for one in sent} == {run.id}
            assert (run.event_id, run.events) == (f"{n}/{max(stamps)}", SENDERS)
    assert len(runs(connection)) == ROUNDS


@pytest.mark.parametrize("options", [BY_KEY, BOTH])
def test_batches_in_opposite_orders_from_two_engines_do_not_deadlock(dsn, connection, options):
    compiled = job(**options)
    with Client(compiled, dsn, max_connections=4) as one, Client(compiled, dsn) as two:
        for n in range(25):
            events = [{"once": f"{n}/{i}", "key": f"{n}/{i % 20}"} for i in range(40)]
            batches = [[Event("event", data) for data in events[::order]] for order in (1, -1) * 4]
            calls = [partial((one, two)[i % 2].send_many, batch) for i, batch in enumerate(batches)]
            answers = together(*calls)
            assert all(isinstance(answer, list) for answer in answers), answers
    assert count(connection, "job_queue") == 25 * 20


def test_senders_against_claimers_lose_no_event_and_see_no_error(dsn, connection):
    """Each event is counted in exactly one run, and the run carries the latest it was sent."""
    keys, each = 5, 150
    done = threading.Event()

    def send_all(client, number):
        for n in range(each):
            send(client, f"k{random.randrange(keys)}", id=f"{number}/{n}")

    def claim_all():
        claimed = []
        with closing(psycopg.connect(dsn, autocommit=True)) as claiming:
            claiming.execute("set jobspec.now = '2100-01-01'")
            while not done.is_set():
                claimed += claim(claiming)
            return claimed + claim(claiming)

    with Client(job(**BY_KEY), dsn, max_connections=6) as client:

        def send_then_say_so():
            answers = together(*(partial(send_all, client, n) for n in range(6)))
            done.set()
            return answers

        answers, *claimed = together(send_then_say_so, claim_all, claim_all)
    assert answers == [None] * 6
    assert all(isinstance(one, list) for one in claimed), claimed
    run_ids = [run.run_id for one in claimed for run in one]
    assert sorted(run_ids) == [run.id for run in runs(connection)]
    assert sum(run.events for run in runs(connection)) == 6 * each
    assert {run.attempt for run in runs(connection)} == {1}


def test_racing_senders_with_both_options_leave_one_run_and_see_no_error(dsn, connection):
    with Client(job(**BOTH), dsn, max_connections=SENDERS) as client:
        for n in range(50):
            keys = [(f"{n}/{i // 2}", f"{n}") for i in range(SENDERS)]
            sent = together(*(partial(send_once, client, *key) for key in keys))
            outcomes = sorted(one.outcome for one in sent)
            assert outcomes == ["coalesced"] * 7 + ["duplicate"] * 8 + ["enqueued"]
            assert len({one.run_id for one in sent}) == 1
    assert {run.events for run in runs(connection)} == {8}
    assert count(connection, "job_queue") == 50


# Senders and claims


def test_a_run_that_is_put_off_while_a_worker_claims_is_left_alone(client, clock, dsn, connection):
    send(client)
    clock.advance(PERIOD)
    with psycopg.connect(dsn) as sending:
        send(client, connection=sending)
        assert claim(connection) == []
    assert run_of(connection).run_at == clock.START + 2 * PERIOD
    assert claim(connection) == []


def test_an_event_meeting_a_claim_makes_a_new_run(client, clock, dsn, connection):
    first = send(client)
    clock.advance(PERIOD)
    with psycopg.connect(dsn) as claiming:
        claim(claiming)

        def finish():
            until(lambda: blocked(connection), "the sender's wait")
            claiming.commit()

        second, finished = together(lambda: send(client), finish)
    assert finished is None
    assert (second.outcome, second.run_id != first.run_id) == ("enqueued", True)
    assert [run.state for run in runs(connection)] == ["running", "pending"]


def test_a_claim_meeting_an_event_that_it_can_not_see_yet_does_not_lose_the_run(
    client, clock, dsn, connection
):
    """A run at its cap is due whatever comes, be it an event that the claim's snapshot lacks."""
    send(client, id="first")
    clock.advance(TIMEOUT)
    send(client, id="second")
    slow_down_claims(connection)
    with psycopg.connect(dsn) as holding, psycopg.connect(dsn, autocommit=True) as claiming:
        holding.execute("select pg_advisory_xact_lock(1)")

        def overtake():
            until(lambda: blocked(connection), "the claim's wait")
            send(client, id="third", connection=holding)
            holding.commit()

        claimed, overtaken = together(lambda: claim(claiming), overtake)
    assert overtaken is None
    claimed += claim(connection)
    assert [run.event_id for run in claimed] == ["third"]
    assert run_of(connection).attempt == 1


def slow_down_claims(connection):
    """Have every look at the time wait for the advisory lock 1, if another session holds it.

    Volatile, or else the planner would look, before the statement's snapshot is taken.
    """
    connection.execute(
        "create or replace function jobspec.now() returns timestamptz language plpgsql volatile as"
        " $$ begin perform pg_advisory_xact_lock_shared(1);"
        " return (select at from jobspec_testing.clock); end $$"
    )


# Transactions


def test_a_burst_sent_through_transactions_that_roll_back_leaves_nothing(client, dsn, connection):
    for _ in range(10):
        with psycopg.connect(dsn) as sending:
            send(client, connection=sending)
            sending.rollback()
    assert {count(connection, table) for table in ("job_event", "job_queue")} == {0}
    assert send(client).outcome == "enqueued"


@pytest.mark.parametrize(("end", "outcome"), [("commit", "coalesced"), ("rollback", "enqueued")])
def test_a_sender_waits_for_the_one_that_began_the_burst(client, dsn, connection, end, outcome):
    with psycopg.connect(dsn) as beginning:
        first = send(client, connection=beginning)

        def finish():
            until(lambda: blocked(connection), "the second sender's wait")
            getattr(beginning, end)()

        second, finished = together(lambda: send(client), finish)
    assert finished is None
    assert (second.outcome, second.run_id == first.run_id) == (outcome, end == "commit")
    assert run_of(connection).events == (2 if end == "commit" else 1)


def test_an_event_that_joins_and_rolls_back_leaves_the_burst_as_it_was(
    client, clock, dsn, connection
):
    send(client, id="first")
    before = run_of(connection)
    clock.advance(3)
    with psycopg.connect(dsn) as sending:
        send(client, id="second", connection=sending)
        sending.rollback()
    assert run_of(connection) == before
