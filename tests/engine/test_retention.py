"""What is deleted when it is old, in which order, and what never is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from databases import wait_until_blocked
from enginekit import (
    claim,
    count,
    dead_letters,
    job,
    jobs,
    run_until_idle,
    runs,
    send,
    until_async,
    used_keys,
    working,
)
from jobspec_engine import Client, NonRetriable, Retention
from jobspec_engine.calls import drive
from jobspec_engine.errors import ArgumentError
from jobspec_engine.retention import Pruned, prune
from jobspec_engine.upkeep_statements import UpkeepStatements

DAY = timedelta(days=1)
MONTH = Retention()
TABLES = ("job_dead_letter", "job_queue", "job_event", "job_idempotency", "job_dispatch")


def pruned(connection, retention=MONTH):
    return drive(connection, prune(retention, UpkeepStatements()))


def counts(connection):
    return [count(connection, table) for table in TABLES]


async def ended(dsn, compiled, *data):
    sent = send(dsn, compiled, *data)
    await run_until_idle(compiled, dsn)
    return sent


async def fails(context):
    raise NonRetriable("no")


async def test_runs_and_their_events_are_deleted_when_they_are_older_than_their_age(
    dsn, clock, connection
):
    compiled = job()
    await ended(dsn, compiled, *[{}] * 5)
    clock.advance(30 * DAY)
    assert pruned(connection) == Pruned(0, 0, 0, 0)
    await ended(dsn, compiled, {})
    clock.advance(1)
    assert pruned(connection) == Pruned(dead_letters=0, runs=5, events=5, keys=0)
    assert counts(connection) == [0, 1, 1, 0, 0]


async def test_a_run_that_ended_lately_stays_however_long_ago_it_was_sent(dsn, clock, connection):
    send(dsn, job())
    clock.advance(100 * DAY)
    await run_until_idle(job(), dsn)
    assert pruned(connection) == Pruned(0, 0, 0, 0)


async def test_what_waits_and_what_runs_stays_with_its_event(dsn, clock, connection):
    send(dsn, job(), {}, {})
    claim(connection, limit=1, lease=1000 * DAY)
    clock.advance(500 * DAY)
    assert pruned(connection) == Pruned(0, 0, 0, 0)
    assert counts(connection)[1:3] == [2, 2]


async def test_a_dead_letter_keeps_its_run_and_its_event_for_its_own_age(dsn, clock, connection):
    await ended(dsn, job(handler=fails))
    clock.advance(89 * DAY)
    assert pruned(connection) == Pruned(0, 0, 0, 0)
    assert len(dead_letters(connection)) == 1
    clock.advance(2 * DAY)
    assert pruned(connection) == Pruned(dead_letters=1, runs=1, events=1, keys=0)


async def test_an_event_is_kept_for_as_long_as_a_run_has_it(dsn, clock, connection):
    await ended(dsn, job())
    clock.advance(10 * DAY)
    few = Retention(runs=20 * DAY, events=DAY)
    assert pruned(connection, few) == Pruned(0, 0, 0, 0)
    clock.advance(11 * DAY)
    assert pruned(connection, few) == Pruned(0, 1, 1, 0)


async def test_an_event_that_two_jobs_have_stays_until_both_have_ended(dsn, clock, connection):
    send(dsn, jobs(one={}, two={"debounce": {"period": "7d"}}))
    await run_until_idle(job("one"), dsn)
    clock.advance(31 * DAY)
    assert pruned(connection) == Pruned(dead_letters=0, runs=1, events=0, keys=0)
    assert counts(connection)[1:3] == [1, 1]


async def test_a_key_that_counts_for_good_outlives_its_run(dsn, clock, connection):
    compiled = job(idempotency="event.data.key")
    ((first,),) = [one.jobs for one in await ended(dsn, compiled, {"key": "k"})]
    clock.advance(1000 * DAY)
    assert pruned(connection) == Pruned(dead_letters=0, runs=1, events=1, keys=0)
    ((again,),) = [one.jobs for one in send(dsn, compiled, {"key": "k"})]
    assert (again.outcome, again.run_id) == ("duplicate", first.run_id)


async def test_keys_are_deleted_when_their_window_or_their_run_has_ended_and_not_before(
    dsn, clock, connection
):
    compiled = jobs(
        day={"idempotency": {"key": "event.data.key", "window": "1d"}},
        active={"idempotency": {"key": "event.data.key", "window": "while-active"}},
    )
    send(dsn, compiled, {"key": "k"})
    assert pruned(connection).keys == 0
    await run_until_idle(compiled, dsn)
    assert pruned(connection).keys == 1
    clock.advance(DAY - timedelta(seconds=1))
    assert pruned(connection).keys == 0
    clock.advance(1)
    assert pruned(connection).keys == 1
    assert not used_keys(connection)


def test_events_without_a_run_go_with_what_is_known_of_their_dispatch(dsn, clock, connection):
    compiled = jobs(job={"idempotency": "event.data.key"}, other={"event": "other"})
    send(dsn, compiled, *[{"key": "k"}] * 3)
    with Client(compiled, dsn) as client:
        client.send("nobody", {})
    assert counts(connection)[2:] == [4, 1, 2]
    clock.advance(31 * DAY)
    assert pruned(connection) == Pruned(dead_letters=0, runs=0, events=3, keys=0)
    assert counts(connection)[1:] == [1, 1, 1, 0]


def test_nothing_goes_that_is_to_be_kept_for_ever(dsn, clock, connection):
    send(dsn, job(idempotency="event.data.key"), *[{"key": n} for n in range(3)])
    connection.execute(
        "update jobspec.job_queue set state = 'completed', finished_at = enqueued_at"
    )
    clock.advance(10_000 * DAY)
    for_good = Retention(runs=None, events=None, dead_letters=None)
    assert pruned(connection, for_good) == Pruned(0, 0, 0, 0)


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ({"runs": timedelta.max}, "runs must be no longer than 36,500 days"),
        ({"events": -DAY}, "events must not be negative"),
        ({"dead_letters": 90}, "dead_letters must be a timedelta, not int"),
        ({"batch": 0}, "batch must be at least 1"),
    ],
)
def test_a_retention_that_can_not_be_meant_is_refused(option, problem):
    with pytest.raises(ArgumentError, match=problem):
        Retention(**option)


@pytest.mark.parametrize("batch", [1, 2, 3, 7, 100])
async def test_batches_of_any_size_delete_the_same(dsn, clock, connection, batch):
    await ended(dsn, job(handler=fails), {}, {})
    await ended(dsn, job(), *[{}] * 4)
    send(dsn, job(), {})
    await ended(dsn, job("late", event="event"), {})
    send(dsn, job(idempotency={"key": "event.data.n", "window": "1d"}), *[{"n": n} for n in "abc"])
    clock.advance(31 * DAY)
    assert pruned(connection, Retention(batch=batch)) == Pruned(0, 5, 5, 3)
    clock.advance(60 * DAY)
    assert pruned(connection, Retention(batch=batch)) == Pruned(2, 2, 2, 0)


async def test_every_batch_is_a_transaction_of_its_own(dsn, clock, connection):
    await ended(dsn, job(), *[{}] * 5)
    clock.advance(31 * DAY)
    steps = prune(Retention(batch=2), UpkeepStatements())
    first = next(steps)
    assert first.query.startswith(b"-- Delete the oldest dead letters")
    with psycopg.connect(dsn, autocommit=True) as other:
        call = steps.send([0])
        deleted = 0
        while b"job_queue" in call.query and b"seen" in call.query and deleted < 2:
            rows = [call.row(row) for row in other.execute(call.query, call.params)]
            deleted += rows[0].deleted
            call = steps.send(rows)
    assert count(connection, "job_queue") == 3


async def test_what_somebody_holds_is_left_and_nobody_waits(dsn, clock, connection):
    compiled = job(idempotency={"key": "event.data.n", "window": "1d"})
    await ended(dsn, compiled, {"n": 1}, {"n": 2})
    clock.advance(31 * DAY)
    with psycopg.connect(dsn) as holding:
        holding.execute("select from jobspec.job_queue order by id limit 1 for update")
        holding.execute("select from jobspec.job_idempotency where key = '1' for update")
        connection.execute("set lock_timeout = '1s'")
        assert pruned(connection) == Pruned(dead_letters=0, runs=1, events=1, keys=1)
    assert pruned(connection) == Pruned(dead_letters=0, runs=1, events=1, keys=1)


async def test_a_send_that_meets_the_deletion_of_its_free_key_takes_it_anew(dsn, clock, connection):
    compiled = job(idempotency={"key": "event.data.n", "window": "1d"})
    await ended(dsn, compiled, {"n": 1})
    clock.advance(2 * DAY)
    with psycopg.connect(dsn) as deleting, Client(compiled, dsn) as client:
        drive(deleting, prune(MONTH, UpkeepStatements()))
        with psycopg.connect(dsn) as sending:
            with ThreadPoolExecutor(1) as pool:
                sent = pool.submit(client.send, "event", {"n": 1}, connection=sending)
                wait_until_blocked(connection)
                deleting.commit()
                assert sent.result().jobs[0].outcome == "enqueued"
            sending.commit()
    assert used_keys(connection) == {"1": (runs(connection)[-1].id, 1)}


async def test_a_worker_that_is_asked_to_deletes_what_is_old_by_itself(dsn, clock, connection):
    await ended(dsn, job())
    clock.advance(31 * DAY)
    async with working(job(), dsn):
        assert counts(connection)[1:3] == [1, 1]
    async with working(job(), dsn, retention=Retention()):
        await until_async(lambda: counts(connection) == [0] * len(TABLES))


def test_pruning_reads_its_tables_by_their_indexes(dsn, connection):
    connection.execute(
        "insert into jobspec.job_event"
        " select n::text, 'event', '{}', 0, now() from generate_series(1, 20000) as n"
    )
    connection.execute(
        "insert into jobspec.job_queue"
        " (job_id, event_id, event_ts, enqueued_at, run_at, max_attempts)"
        " select 'job', n::text, 0, now(), now(), 1 from generate_series(1, 20000) as n"
    )
    connection.execute("vacuum analyze")
    statements = UpkeepStatements()
    month = 30 * DAY
    calls = {
        "job_queue_pkey": statements.prune_runs(0, month, 1000),
        "job_event_received": statements.prune_events(None, "", month, 1000),
        "job_idempotency_expiring": statements.prune_keys(1000),
        "job_dead_letter_recent": statements.prune_dead_letters(month, 1000),
    }
    connection.execute("set enable_seqscan = off")  # small tables would be read in whole
    for index, call in calls.items():
        plan = connection.execute(b"explain " + call.query, call.params).fetchall()
        assert any(index in line for (line,) in plan), plan
