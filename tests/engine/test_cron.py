"""Schedules on a moved clock: each tick once, whatever workers, deploys and the clock do."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import psycopg
import pytest

import jobspec
from enginekit import PATIENCE, count, run_of, run_until_idle, runs, until_async, worker, working
from jobspec import Registry
from jobspec_engine import Client
from jobspec_engine.calls import drive, fetch
from jobspec_engine.cron import MOST_MISSED, Crons
from jobspec_engine.upkeep_statements import UpkeepStatements
from vectors import rows

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
HOURLY = "0 * * * *"
STATEMENTS = UpkeepStatements()
EVENTS = (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")


async def nothing(context):
    """What the jobs here do."""


def scheduled(cron=HOURLY, *, job_id="job", handler=nothing, options=None, events=(), **trigger):
    """Compile one job with a schedule, and the events that start it besides."""
    registry = Registry()
    triggers = [{"cron": cron, **trigger}, *events]
    registry.job(id=job_id, triggers=triggers, **(options or {}))(handler)
    return jobspec.compile(registry)


def poll(connection, compiled):
    """Do what a worker does about cron at every poll, and return how many ticks it sent."""
    crons = Crons(compiled, STATEMENTS)
    keys = drive(connection, crons.watch())
    with connection.transaction():
        return drive(connection, crons.tick(keys)) if keys else 0


def ticks(connection):
    """Return when the ticks were that started runs."""
    rows = connection.execute(
        "select ts from jobspec.job_event as event join jobspec.job_queue on event_id = event.id"
        " order by ts"
    )
    return [datetime.fromtimestamp(ts / 1000, UTC) for (ts,) in rows]


def deployed(connection, clock, compiled):
    """Let a worker see the schedule, at the clock's start."""
    assert poll(connection, compiled) == 0
    return clock.now()


def test_a_schedule_that_is_new_does_not_fire_for_the_past(clock, connection):
    clock.advance(30 * MINUTE)
    deployed(connection, clock, scheduled(missed="all"))
    assert poll(connection, scheduled(missed="all")) == 0
    assert not ticks(connection)


def test_a_tick_starts_a_run_with_the_schedule_as_its_data_and_its_time(clock, connection):
    start = deployed(connection, clock, scheduled())
    clock.advance(HOUR - timedelta(seconds=1))
    assert poll(connection, scheduled()) == 0
    clock.advance(1)
    assert poll(connection, scheduled()) == 1
    assert poll(connection, scheduled()) == 0
    assert ticks(connection) == [start + HOUR]
    (name, data) = connection.execute("select name, data from jobspec.job_event").fetchone()
    assert (name, data) == ("inngest/scheduled.timer", {"cron": HOURLY})


async def test_the_event_of_a_tick_is_what_the_page_of_events_says(dsn, clock, connection):
    (told,) = map(json.loads, re.findall(r"^```json\n(.*?)^```$", EVENTS, re.MULTILINE | re.DOTALL))
    seen = []

    async def handler(context):
        seen.append({"name": context.event.name, "data": context.event.data})

    compiled = scheduled(told["data"]["cron"], handler=handler, missed="all")
    deployed(connection, clock, compiled)
    clock.advance(DAY)
    await run_until_idle(compiled, dsn)
    assert seen == [told]


def test_a_worker_that_restarts_between_two_polls_loses_no_tick(clock, connection):
    start = deployed(connection, clock, scheduled())
    clock.advance(HOUR + timedelta(seconds=59))
    assert poll(connection, scheduled()) == 1
    assert ticks(connection) == [start + HOUR]


MISSED = {
    "skip": [],
    "once": [10 * HOUR],
    "all": [hours * HOUR for hours in range(1, 11)],
}


@pytest.mark.parametrize(("missed", "expected"), MISSED.items())
def test_missed_ticks_are_skipped_or_made_up_for_once_or_each(clock, connection, missed, expected):
    compiled = scheduled(missed=missed)
    start = deployed(connection, clock, compiled)
    clock.advance(10 * HOUR + MINUTE)
    assert poll(connection, compiled) == len(expected)
    assert poll(connection, compiled) == 0
    assert ticks(connection) == [start + one for one in expected]
    clock.set(start + 11 * HOUR)
    assert poll(connection, compiled) == 1


@pytest.mark.parametrize("missed", MISSED)
def test_a_tick_that_is_on_time_is_sent_whatever_was_missed_before(clock, connection, missed):
    start = deployed(connection, clock, scheduled(missed=missed))
    clock.advance(2 * HOUR)
    poll(connection, scheduled(missed=missed))
    assert ticks(connection)[-1] == start + 2 * HOUR


def test_no_more_than_the_latest_hundred_of_the_missed_ticks_are_made_up_for(clock, connection):
    compiled = scheduled("* * * * *", missed="all")
    start = deployed(connection, clock, compiled)
    clock.advance(200 * MINUTE)
    assert poll(connection, compiled) == MOST_MISSED
    assert ticks(connection)[0] == start + 101 * MINUTE
    assert poll(connection, compiled) == 0


def test_no_tick_of_more_than_seven_days_ago_is_made_up_for(clock, connection):
    compiled = scheduled("0 0 * * *", missed="all")
    start = deployed(connection, clock, compiled)
    clock.advance(20 * DAY + HOUR)
    assert poll(connection, compiled) == 7
    assert ticks(connection)[0] == start + 14 * DAY


def test_the_latest_tick_is_made_up_for_however_long_ago_it_was(clock, connection):
    compiled = scheduled("0 0 1 * *", missed="once")
    start = deployed(connection, clock, compiled)
    clock.set(datetime(2026, 3, 28, tzinfo=UTC))
    assert poll(connection, compiled) == 1
    assert ticks(connection) == [datetime(2026, 3, 1, tzinfo=UTC)]
    assert start < ticks(connection)[0]


def test_a_schedule_is_read_in_its_time_zone_also_where_clocks_change(clock, connection):
    """The local time that is there twice fires twice, as in the reference (crons.jsonl)."""
    compiled = scheduled("TZ=Europe/Berlin 30 2 * * *", missed="all")
    clock.set(datetime(2026, 10, 24, 12, tzinfo=UTC))
    deployed(connection, clock, compiled)
    clock.set(datetime(2026, 10, 26, 12, tzinfo=UTC))
    assert poll(connection, compiled) == 3
    berlin = [at.astimezone(ZoneInfo("Europe/Berlin")) for at in ticks(connection)]
    assert [f"{at:%d %H:%M %Z}" for at in berlin] == [
        "25 02:30 CEST",
        "25 02:30 CET",
        "26 02:30 CET",
    ]


def in_a_zone():
    """Some of the reference's schedules that have a zone, with their next times (crons.jsonl)."""
    return [row for row in rows("crons") if row["cron"].startswith("TZ=") and row.get("next")][:25]


def test_the_ticks_of_the_reference_are_sent_at_their_times_and_not_before(clock, connection):
    for number, row in enumerate(in_a_zone()):
        compiled = scheduled(row["cron"], job_id=f"job-{number}")
        clock.set(datetime.fromisoformat(row["from"]))
        assert poll(connection, compiled) == 0
        for at in map(datetime.fromisoformat, row["next"]):
            clock.set(at - timedelta(seconds=1))
            assert poll(connection, compiled) == 0, row
            clock.set(at)
            assert poll(connection, compiled) == 1, row


def test_a_tick_is_put_off_by_a_part_of_its_jitter(clock, connection):
    compiled = scheduled(jitter="5m", missed="all")
    start = deployed(connection, clock, compiled)
    clock.set(start + 20 * HOUR)
    assert poll(connection, compiled) == 20
    waits = [run.run_at - clock.now() for run in runs(connection)]
    assert all(timedelta(0) <= wait <= 5 * MINUTE for wait in waits)
    assert len(set(waits)) > 1


# --- many workers, deploys, the clock


async def test_many_workers_and_a_deploy_make_one_run_for_each_tick(dsn, clock, connection):
    compiled = scheduled()
    async with working(compiled, dsn), working(compiled, dsn):
        await until_async(lambda: count(connection, "job_cron") == 1)
        for hours in range(1, 4):
            clock.advance(HOUR)
            await until_async(lambda hours=hours: len(runs(connection)) == hours)
            async with working(compiled, dsn) as third:
                for _ in range(3):
                    clock.advance(1)
                    await third._upkeep.tick()
    assert len(ticks(connection)) == len(set(ticks(connection))) == 3
    await run_until_idle(compiled, dsn)
    assert {run.state for run in runs(connection)} == {"completed"}


def test_schedules_that_a_worker_holds_are_left_to_it_until_it_dies(dsn, clock, connection):
    compiled = scheduled()
    deployed(connection, clock, compiled)
    clock.advance(HOUR)
    crons = Crons(compiled, STATEMENTS)
    with psycopg.connect(dsn, autocommit=True) as dying:
        keys = drive(dying, crons.watch())
        with dying.transaction(force_rollback=True):
            assert drive(dying, crons.tick(keys)) == 1
            (patience,) = dying.execute("show idle_in_transaction_session_timeout").fetchone()
            assert patience == "10s"
            assert poll(connection, compiled) == 0
    assert not ticks(connection)
    assert poll(connection, compiled) == 1


def test_a_tick_that_was_sent_is_not_sent_again_whatever_the_table_says(clock, connection):
    compiled = scheduled()
    start = deployed(connection, clock, compiled)
    clock.advance(HOUR)
    poll(connection, compiled)
    connection.execute("update jobspec.job_cron set ticked_until = %s", [start])
    assert poll(connection, compiled) == 1
    assert ticks(connection) == [start + HOUR]


def test_a_clock_that_is_put_back_starts_nothing_again_and_loses_nothing(clock, connection):
    compiled = scheduled()
    start = deployed(connection, clock, compiled)
    clock.set(start + HOUR)
    poll(connection, compiled)
    clock.set(start + DAY)  # by mistake: the ticks between are missed
    poll(connection, compiled)
    clock.set(start + 30 * MINUTE)
    for _ in range(4 * 60):
        clock.advance(MINUTE)
        poll(connection, compiled)
    sent = [start + hours * HOUR for hours in (1, 2, 3, 4, 24)]
    assert ticks(connection) == sent


@pytest.mark.parametrize(("cron", "sent"), [("0 0 * * *", 0), ("0 */1 * * *", 1)])
def test_a_worker_with_another_schedule_leaves_this_one_alone(clock, connection, cron, sent):
    hourly, other = scheduled(), scheduled(cron)
    start = deployed(connection, clock, hourly)
    deployed(connection, clock, other)
    clock.advance(HOUR)
    assert poll(connection, other) == sent
    assert poll(connection, hourly) == 1
    assert ticks(connection) == [start + HOUR] * (1 + sent)


def test_a_tick_that_its_job_rejects_is_not_sent_and_stops_nobody(clock, connection, caplog):
    options = {"idempotency": "event.data.day", "on_missing": "reject"}
    compiled = scheduled(options=options, events=["day.over"])
    deployed(connection, clock, compiled)
    clock.advance(HOUR)
    assert poll(connection, compiled) == 0
    assert "was not sent: job `job` rejects this event" in caplog.text
    assert poll(connection, compiled) == 0
    assert not ticks(connection)


def test_a_schedule_of_any_length_is_known_by_its_digest(clock, connection):
    compiled = scheduled(",".join(str(n % 60) for n in range(5000)) + " * * * *")
    start = deployed(connection, clock, compiled)
    clock.advance(MINUTE)
    assert poll(connection, compiled) == 1
    assert ticks(connection) == [start + MINUTE]


# --- pausing


async def test_a_paused_job_is_not_claimed_and_goes_on_when_it_is_resumed(dsn, clock, connection):
    compiled = scheduled()
    with Client(compiled, dsn) as client:
        assert client.pause("job")
        assert not client.pause("job")
        client.add_job("job")
        await run_until_idle(compiled, dsn)
        assert run_of(connection).state == "pending"
        assert fetch(connection, STATEMENTS.next_due(["job"])) == [None]
        async with working(compiled, dsn, poll=HOUR) as at_work:
            await until_async(lambda: not at_work._nudge.is_set())
            assert client.resume("job")
            assert not client.resume("job")
            await until_async(lambda: run_of(connection).state == "completed")


@pytest.mark.parametrize(("missed", "expected"), MISSED.items())
def test_ticks_of_a_paused_job_count_as_missed(dsn, clock, connection, missed, expected):
    compiled = scheduled(missed=missed)
    start = deployed(connection, clock, compiled)
    with Client(compiled, dsn) as client:
        client.pause("job")
        for _ in range(10):
            clock.advance(HOUR)
            assert poll(connection, compiled) == 0
        clock.advance(MINUTE)
        client.resume("job")
    assert poll(connection, compiled) == len(expected)
    assert ticks(connection) == [start + one for one in expected]


def test_a_job_that_is_paused_when_its_ticks_are_due_to_be_sent_has_none(dsn, clock, connection):
    """The pause came between the look at the schedules and the taking of them."""
    compiled = scheduled()
    deployed(connection, clock, compiled)
    clock.advance(HOUR)
    crons = Crons(compiled, STATEMENTS)
    keys = drive(connection, crons.watch())
    with Client(compiled, dsn) as client:
        client.pause("job")
    with connection.transaction():
        assert drive(connection, crons.tick(keys)) == 0


async def test_a_run_that_is_running_when_its_job_is_paused_goes_on(dsn, connection):
    entered, told = asyncio.Event(), asyncio.Event()

    async def handler(context):
        entered.set()
        await told.wait()

    compiled = scheduled(handler=handler)
    with Client(compiled, dsn) as client:
        client.add_job("job")
        async with working(compiled, dsn):
            await asyncio.wait_for(entered.wait(), PATIENCE)
            client.pause("job")
            told.set()
            await until_async(lambda: run_of(connection).state == "completed")


# --- the register of workers


async def test_a_worker_is_seen_while_it_works_and_forgotten_when_it_has_stopped(dsn, connection):
    def seen():
        return connection.execute("select name, job_ids from jobspec.job_worker").fetchall()

    async with working(scheduled(), dsn, name="one"):
        await until_async(lambda: seen() == [("one", ["job"])])
    assert not seen()


def seen(connection):
    """Return which workers are seen, and when they were last."""
    rows = connection.execute("select name, seen_at from jobspec.job_worker order by name")
    return rows.fetchall()


async def test_a_worker_that_died_is_forgotten_by_the_others_after_an_hour(dsn, clock, connection):
    start, dead = clock.now(), worker(scheduled(), dsn, name="dead")
    async with dead._database:
        await dead._upkeep.show()
    clock.advance(HOUR - MINUTE)
    async with working(scheduled(), dsn, name="one"):
        later = ("one", clock.now())
        await until_async(lambda: seen(connection) == [("dead", start), later])
    clock.advance(2 * MINUTE)
    async with working(scheduled(), dsn, name="two"):
        await until_async(lambda: seen(connection) == [("two", clock.now())])


async def test_a_worker_is_seen_time_and_again(dsn, clock, connection, monkeypatch):
    monkeypatch.setattr("jobspec_engine.upkeep._SHOW_EVERY", 0)
    at_work = worker(scheduled(), dsn, name="one")
    async with at_work._database:
        for _ in range(2):
            await at_work._upkeep.show()
            assert seen(connection) == [("one", clock.now())]
            clock.advance(MINUTE)
