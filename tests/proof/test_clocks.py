"""Clocks that are wrong: those of workers and senders always, the database's from time to time.

What the engine waits for is a time by the database's clock. When that jumps, nothing is lost and
nothing stays stuck; what waited comes early or late by the jump at most.
"""

from __future__ import annotations

import ast
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

import jobspec_engine
from databases import PythonProcess
from enginekit import (
    SQL,
    Gate,
    claim,
    complete,
    count,
    dead_letters,
    fail,
    job,
    jobs,
    release,
    run_of,
    run_until_idle,
    runs,
    until_async,
    used_keys,
    working,
)
from jobspec_engine import Client, Retention
from jobspec_engine.calls import drive, fetch
from jobspec_engine.retention import prune
from jobspec_engine.upkeep_statements import UpkeepStatements
from proof.report import attack

WRONG_BY = timedelta(minutes=5)
JUMP = timedelta(minutes=10)
MINUTE = timedelta(minutes=1)
LEASE = timedelta(seconds=30)
ENGINE = Path(jobspec_engine.__file__).parent


# The clock of a host

# What may read a host's clock, and why.
READERS = {
    "events.py: time.time_ns": "ids that are in order of time fill the pages of an index",
    "doctor.py: datetime.now": "it tells how far the host's clock is from the database's",
}
WALL_CLOCKS = {
    *("time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.ctime", "time.strftime"),
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
}


def read_clocks(file):
    """Return the host's clocks that a module reads."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in WALL_CLOCKS:
            yield f"{file.relative_to(ENGINE)}: {ast.unparse(node)}"
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            assert not {one.name for one in node.names} & {"time", "time_ns"}, file


def test_no_decision_of_the_engine_hangs_on_a_hosts_clock():
    found = {clock for file in ENGINE.rglob("*.py") for clock in read_clocks(file)}
    assert found == set(READERS)


# Runs what is due of all that waits for a time, on a host whose clock is wrong.
HOST = """
import datetime, sys, time
import psycopg_pool  # its parts in C are made for the right class

wrong_by = float(sys.argv[2])
right, right_ns, Right = time.time, time.time_ns, datetime.datetime

class Kind(type(Right)):
    def __instancecheck__(cls, value):
        return isinstance(value, Right)

class Wrong(Right, metaclass=Kind):
    @classmethod
    def now(cls, tz=None):
        return Right.fromtimestamp(time.time(), tz)

time.time = lambda: right() + wrong_by
time.time_ns = lambda: right_ns() + int(wrong_by * 1e9)
datetime.datetime = Wrong

import asyncio
from datetime import timedelta
import jobspec
from jobspec_engine import Client, Worker

registry = jobspec.Registry()
retry = {"policy": "fixed", "delay": "30s"}

@registry.job(id="fails", triggers=["all"], retries=1, retry=retry)
async def fails(context):
    raise ValueError("no")

@registry.job(id="sleeps", triggers=["all"], timeouts={"start": "1h", "finish": "5h"})
async def sleeps(context):
    await context.step.sleep("long", timedelta(hours=1))
    await context.step.wait_for_event("never", timeout=timedelta(hours=1))

@registry.job(id="late", triggers=["all"], debounce={"period": "2m", "timeout": "15m"})
async def late(context):
    pass

@registry.job(
    id="once", triggers=["all"], idempotency={"key": "event.data.key", "window": "10m"}
)
async def once(context):
    pass

@registry.job(id="tick", triggers=[{"cron": "* * * * *", "missed": "all"}])
async def tick(context):
    pass

compiled = jobspec.compile(registry)
if time.time() - right() - wrong_by > 1:
    raise AssertionError("the clock is right")
for line in sys.stdin:
    with Client(compiled, sys.argv[1]) as client:
        if line.strip():
            client.send("all", {"key": 1}, id=line.strip())
            client.add_job("late", {}, job_key="k", delay=timedelta(minutes=3))
    asyncio.run(Worker(compiled, sys.argv[1], name="host").run(until_idle=True))
    print("idle")
"""

TABLES = {
    "runs": "select to_jsonb(one) - '{event_id, lease_token, errors}'::text[], error"
    " from jobspec.job_queue as one, lateral (select array_agg("
    "   entry::jsonb - 'traceback') as error from unnest(errors) as entry) as errors order by id",
    # A pass goes by the time at which it read the memos and what passed since: milliseconds.
    "memos": "select to_jsonb(one) - '{revision, answers_from}'::text[],"
    " date_trunc('minute', answers_from) from jobspec.job_step as one order by run_id, name",
    "keys": "select to_jsonb(one) from jobspec.job_idempotency as one",
    "schedules": "select to_jsonb(one) from jobspec.job_cron as one",
    "dead letters": "select to_jsonb(one) - 'event_id' from jobspec.job_dead_letter as one"
    " order by run_id",
}


def what_a_host_does(dsn, clock, connection, wrong_by):
    """Have a host do all it does over three hours; return what the tables say in the end."""
    clock.set(clock.START)
    with PythonProcess(HOST, dsn, wrong_by.total_seconds()) as host:
        for event, wait in (("a", 0), ("b", 1), ("", 2), ("c", 20), ("", 30), ("", 60), ("", 61)):
            clock.advance(wait * MINUTE)
            host.tell(event)
            host.expect("idle")
    return {table: connection.execute(query).fetchall() for table, query in TABLES.items()}


def emptied(connection):
    connection.execute(
        "truncate jobspec.job_event, jobspec.job_queue, jobspec.job_dispatch, jobspec.job_step,"
        " jobspec.job_idempotency, jobspec.job_dead_letter, jobspec.job_cron restart identity"
    )


def test_what_a_host_does_is_the_same_whatever_its_clock_says(dsn, clock, connection):
    with attack("hosts whose clocks are 5 minutes wrong") as row:
        right = what_a_host_does(dsn, clock, connection, timedelta(0))
        assert len(right["runs"]) > 100  # of the ticks most
        for wrong_by in (WRONG_BY, -WRONG_BY):
            emptied(connection)
            assert what_a_host_does(dsn, clock, connection, wrong_by) == right
            row.cases += len(right["runs"])


# The clock of the database


@pytest.fixture(params=[JUMP, -JUMP], ids=["forward", "back"])
def jump(request):
    """By how much the database's clock jumps."""
    return request.param


# What waits for a time, and how long, in minutes.
WAITS = {
    "retry": 5,
    "late retry": 20,
    "sleep": 5,
    "late sleep": 20,
    "wait": 5,
    "late wait": 20,
    "debounced": 5,
    "late debounced": 20,
    "added": 5,
    "late added": 20,
}


def waiting_jobs(ended):
    """Return jobs whose runs note the time by the clock at which they end."""

    async def retry(context):
        if context.attempt == 1:
            raise ValueError
        ended(context)

    def sleep(minutes):
        async def handler(context):
            await context.step.sleep("a while", minutes * MINUTE)
            ended(context)

        return handler

    def wait(minutes):
        async def handler(context):
            assert await context.step.wait_for_event("never", timeout=minutes * MINUTE) is None
            ended(context)

        return handler

    async def noted(context):
        ended(context)

    def options(name, minutes):
        match name.split()[-1]:
            case "retry":
                backoff = {"policy": "fixed", "delay": f"{minutes}m"}
                return {"handler": retry, "retries": 1, "retry": backoff}
            case "sleep":
                return {"handler": sleep(minutes)}
            case "wait":
                return {"handler": wait(minutes)}
            case "debounced":
                return {"handler": noted, "debounce": {"period": f"{minutes}m"}}
            case _:
                return {"handler": noted, "event": "nobody sends it"}

    return jobs(**{name.replace(" ", "-"): options(name, wait) for name, wait in WAITS.items()})


async def test_what_waits_for_a_time_ends_once_and_early_by_the_jump_at_most(
    dsn, clock, connection, jump
):
    ended = {}
    compiled = waiting_jobs(
        lambda context: ended.setdefault(context.job_id, []).append(clock.now())
    )
    start = clock.now()
    with Client(compiled, dsn) as client:
        client.send("event", {})
        for name in ("added", "late-added"):
            wait = WAITS[name.replace("-", " ")] * MINUTE
            client.add_job(name, {}, job_key="key", delay=wait)
    await run_until_idle(compiled, dsn)
    clock.advance(jump)
    while any(run.finished_at is None for run in runs(connection)):
        await run_until_idle(compiled, dsn)
        clock.advance(MINUTE)
        assert clock.now() < start + 60 * MINUTE, "a run is stuck"
    due = {name.replace(" ", "-"): start + wait * MINUTE for name, wait in WAITS.items()}
    with attack("the database's clock jumps ten minutes") as row:
        row.cases = len(due)
        row.doubled = sum(len(times) > 1 for times in ended.values())
        row.lost = len(due.keys() - ended.keys())
    assert {name: times for name, times in ended.items() if len(times) > 1} == {}
    # Never before its time by the clock, and at once where the clock jumped over it.
    assert {name: max(at, start + jump) for name, at in due.items()} == {
        name: times[0] for name, times in ended.items()
    }


def held(connection, clock):
    lease_until = run_of(connection).lease_until
    return lease_until and lease_until > clock.now()


async def test_a_run_at_work_ends_once_when_the_clock_jumps(dsn, clock, connection, jump):
    """Forward, its lease is renewed, or runs out: entered again, the first pass records nothing."""
    gate, compiled = Gate(), job()
    with Client(compiled, dsn) as client:
        client.send("event", {})
    forward = jump > timedelta(0)
    async with working(job(handler=gate), dsn, lease=LEASE):
        await gate.next()
        clock.advance(jump)
        await until_async(lambda: gate.entered.qsize() or held(connection, clock), "its lease")
        gate.open.set()
        await until_async(lambda: run_of(connection).state == "completed", "the run's end")
    run = run_of(connection)
    assert (run.state, run.attempt) == ("completed", 1)
    assert run.refunds == gate.entered.qsize() <= (1 if forward else 0)


def test_the_runs_of_a_dead_worker_are_reclaimed_late_by_the_jump_at_most(
    dsn, clock, connection, jump
):
    with Client(job(), dsn) as client:
        client.send("event", {})
    claim(connection, lease=LEASE)
    lease_until = clock.now() + LEASE
    clock.advance(jump)
    clock.set(max(clock.now(), lease_until + timedelta(microseconds=1)))
    assert [one.state for one in fetch(connection, SQL.reclaim(5, 10))] == ["pending"]


ACTIVE = {"idempotency": {"key": "event.data.key", "window": "while-active"}}
ENDS = {
    "completes": complete,
    "fails": partial(fail, delay=None),
    "is cancelled": release,
    "is lost": lambda connection, *_: fetch(connection, SQL.reclaim(5, 10)),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_key_that_counts_while_its_run_is_active_is_free_after_that_by_any_clock(
    dsn, clock, connection, end, jump
):
    compiled = job(**ACTIVE)
    with Client(compiled, dsn) as client:
        client.send("event", {"key": 1})
        (run,) = claim(connection, lease=LEASE)
        if end in ("is cancelled", "is lost"):
            client.cancel(run.run_id)
        clock.advance(2 * LEASE)
        ENDS[end](connection, run, run_of(connection).lease_token)
        assert run_of(connection).finished_at
        clock.advance(jump)
        assert client.send("event", {"key": 1}).jobs[0].outcome == "enqueued"


def test_a_key_of_a_run_that_was_cancelled_while_it_waited_is_free_by_any_clock(dsn, clock, jump):
    with Client(job(**ACTIVE), dsn) as client:
        client.cancel(client.send("event", {"key": 1}).jobs[0].run_id)
        clock.advance(jump)
        assert client.send("event", {"key": 1}).jobs[0].outcome == "enqueued"


def test_a_window_lasts_as_long_as_it_says_by_the_clock(dsn, clock, connection, jump):
    compiled = job(idempotency={"key": "event.data.key", "window": "15m"})
    end = clock.now() + 15 * MINUTE
    with Client(compiled, dsn) as client:
        client.send("event", {"key": 1})
        clock.advance(jump)
        assert client.send("event", {"key": 1}).jobs[0].outcome == "duplicate"
        clock.set(end)
        assert client.send("event", {"key": 1}).jobs[0].outcome == "enqueued"
    assert used_keys(connection)["1"][1] == 1


def test_a_burst_stays_one_run_within_its_cap_when_the_clock_jumps(dsn, clock, connection, jump):
    compiled = job(debounce={"period": "12m", "timeout": "15m"})
    cap = clock.now() + 15 * MINUTE
    with Client(compiled, dsn) as client:
        client.send("event", {})
        clock.advance(jump)
        assert client.send("event", {}).jobs[0].outcome == "coalesced"
    assert (run_of(connection).run_by, run_of(connection).events) == (cap, 2)
    assert run_of(connection).run_at == min(cap, clock.START + max(jump, jump * 0) + 12 * MINUTE)


def test_nothing_that_is_younger_than_its_age_is_pruned_when_the_clock_jumps(
    dsn, clock, connection, jump
):
    retention = Retention(runs=15 * MINUTE, events=15 * MINUTE, dead_letters=15 * MINUTE)
    with Client(job(), dsn) as client:
        client.send("event", {})
    run = claim(connection)[0]
    complete(connection, run, run_of(connection).lease_token)
    statements = UpkeepStatements()
    clock.advance(jump)
    assert drive(connection, prune(retention, statements)).runs == 0
    clock.set(clock.START + 15 * MINUTE + timedelta(microseconds=1))
    assert drive(connection, prune(retention, statements)).runs == 1
    assert (count(connection, "job_event"), dead_letters(connection)) == (0, [])
