"""Cancellations that meet sends and the ends of runs: each sees the others, and none fails."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

import psycopg

from databases import together
from enginekit import SQL, blocked, claim, job, run_of, runs, until
from jobspec_engine import Cancelled, Client, Event
from jobspec_engine.calls import fetch
from jobspec_engine.dispatch import digest
from jobspec_engine.rows import Completion

ROUNDS = 100
WHILE_ACTIVE = {"idempotency": {"key": "event.data.key", "window": "while-active"}}
BOTH = {**WHILE_ACTIVE, "debounce": {"period": "1m", "key": "event.data.burst"}}


def send(client, **data):
    (sent,) = client.send("event", data).jobs
    return sent


def test_a_key_that_joins_a_run_while_it_is_being_cancelled_is_freed_too(dsn, connection):
    """The cancellation waits for the send, and must then see what that did."""
    with Client(job(**BOTH), dsn) as client:
        first = send(client, key="k1", burst="b")
        with psycopg.connect(dsn) as sending:
            joined = client.send("event", {"key": "k2", "burst": "b"}, connection=sending).jobs[0]
            assert (joined.outcome, joined.run_id) == ("coalesced", first.run_id)

            def commit():
                until(lambda: blocked(connection), "the cancellation's wait")
                sending.commit()

            cancelled, committed = together(partial(client.cancel, first.run_id), commit)
        assert committed is None
        assert cancelled.outcome == "cancelled"
        for key in ("k1", "k2"):
            assert send(client, key=key, burst=key).outcome == "enqueued"


def test_a_run_that_is_claimed_while_it_is_being_cancelled_is_asked_to_end(dsn, connection):
    with Client(job(**BOTH), dsn) as client, psycopg.connect(dsn) as stopping:
        run_id = send(client, key="k", burst="b").run_id
        connection.execute("update jobspec.job_queue set run_at = now()")
        stopping.execute("select from jobspec.job_idempotency for update")

        def claim_it():
            until(lambda: blocked(connection), "the cancellation's wait")
            (run,) = claim(connection)
            stopping.commit()
            return run.run_id

        told = together(partial(client.cancel, run_id), claim_it)
    assert told == [Cancelled(run_id, "requested"), run_id]
    assert run_of(connection).cancel_requested_at is not None


def test_a_cancellation_and_a_send_that_holds_the_key_and_wants_the_run_do_not_deadlock(
    dsn, connection
):
    """Stopped between the two by a lock on another run, which it takes before this one."""
    before, after = sorted(("a", "b"), key=digest)
    with Client(job(**BOTH), dsn) as client, psycopg.connect(dsn) as stopping:
        other = send(client, key="other", burst=before).run_id
        run = send(client, key="k", burst=after).run_id
        stopping.execute("select from jobspec.job_queue where id = %s for update", [other])
        batch = [("k", after), ("k2", before), ("k3", after)]
        events = [Event("event", {"key": key, "burst": burst}) for key, burst in batch]

        def cancel():
            until(lambda: blocked(connection, 1), "the wait of the send")
            return client.cancel(run)

        def go_on():
            until(lambda: blocked(connection, 2), "the wait of the cancellation")
            stopping.commit()

        sent, cancelled, gone_on = together(partial(client.send_many, events), cancel, go_on)
    assert gone_on is None
    assert cancelled == Cancelled(run, "cancelled")
    assert [one.jobs[0].outcome for one in sent] == ["duplicate", "coalesced", "coalesced"]


def test_sends_and_cancellations_of_the_same_keys_and_runs_do_not_deadlock(dsn, connection):
    with Client(job(**BOTH), dsn, max_connections=16) as client:
        for n in range(ROUNDS):
            run = send(client, key=f"{n}", burst=f"{n}").run_id
            sends = [partial(send, client, key=key, burst=f"{n}") for key in (f"{n}", f"{n}/2") * 3]
            cancels = [partial(client.cancel, run)] * 4
            for told in together(*sends, *cancels):
                assert not isinstance(told, Exception), told


def test_the_end_of_runs_and_a_send_of_their_keys_do_not_deadlock(dsn, connection):
    """Everybody locks keys in the order of their digests, in whatever order the runs are."""
    low, high = sorted(("a", "b"), key=digest)
    token = uuid4()
    with Client(job(**WHILE_ACTIVE), dsn) as client, psycopg.connect(dsn) as sending:
        for key in (high, low):
            send(client, key=key)
        held = claim(connection, token=token)
        client.send("event", {"key": low}, connection=sending)  # holds the one

        def send_the_other():
            until(lambda: blocked(connection), "the wait for the first key")
            client.send("event", {"key": high}, connection=sending)
            sending.commit()

        with psycopg.connect(dsn, autocommit=True) as ending:
            completions = SQL.complete([Completion(run.run_id, token, "1") for run in held])
            for told in together(partial(fetch, ending, completions), send_the_other):
                assert not isinstance(told, Exception), told
    assert {run.state for run in runs(connection)} == {"completed"}
