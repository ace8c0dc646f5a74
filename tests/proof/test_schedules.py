"""Schedules over both changes of the clocks: against every minute of those days, one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import jobspec
from enginekit import nothing
from jobspec import Registry
from jobspec_engine.calls import drive
from jobspec_engine.cron import Crons
from proof.pair import UPKEEP
from proof.report import attack

MINUTE, JITTER = timedelta(minutes=1), timedelta(minutes=5)
FIRED = """
    select queue.job_id, to_timestamp(event.ts / 1000.0), queue.enqueued_at, queue.run_at
    from jobspec.job_queue as queue join jobspec.job_event as event on event.id = queue.event_id
    order by event.ts
"""

# By job: the zone, and which minutes there match.
BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"
SCHEDULES = {
    "in-the-gap": (BERLIN, "30 2 * * *", lambda at: (at.hour, at.minute) == (2, 30)),
    "at-its-end": (BERLIN, "0 3 * * *", lambda at: (at.hour, at.minute) == (3, 0)),
    "each-hour": (BERLIN, "0 * * * *", lambda at: at.minute == 0),
    "often": (NEW_YORK, "*/20 1-3 * * *", lambda at: 1 <= at.hour <= 3 and at.minute % 20 == 0),
    "on-sundays": (NEW_YORK, "15 1 * * 0", lambda at: f"{at:%a %H:%M}" == "Sun 01:15"),
    "in-utc": ("UTC", "30 1 * * *", lambda at: (at.hour, at.minute) == (1, 30)),
}

# The nights in which clocks change in Berlin and in New York.
NIGHTS = {
    "Berlin, forward": datetime(2026, 3, 28, 22, tzinfo=UTC),
    "Berlin, back": datetime(2026, 10, 24, 22, tzinfo=UTC),
    "New York, forward": datetime(2026, 3, 8, 4, tzinfo=UTC),
    "New York, back": datetime(2026, 11, 1, 4, tzinfo=UTC),
}
HOURS = 6


def compiled(missed):
    registry = Registry()
    for job_id, (zone, cron, _) in SCHEDULES.items():
        trigger = {"cron": f"TZ={zone} {cron}", "jitter": "5m", "missed": missed}
        registry.job(id=job_id, triggers=[trigger])(nothing)
    return jobspec.compile(registry)


def matching(start):
    """Return when each job is to fire: at each minute whose time on the wall there matches."""
    minutes = [start + n * MINUTE for n in range(1, HOURS * 60 + 1)]
    return {
        (job_id, at)
        for job_id, (zone, _, matches) in SCHEDULES.items()
        for at in minutes
        if matches(at.astimezone(ZoneInfo(zone)))
    }


def poll(connection, jobs):
    """Do what a worker does that has just started."""
    crons = Crons(jobs, UPKEEP)
    keys = drive(connection, crons.watch())
    with connection.transaction():
        drive(connection, crons.tick(keys))


@pytest.mark.parametrize("night", NIGHTS)
@pytest.mark.parametrize(("missed", "every"), [("skip", 1), ("all", 7)])
def test_a_tick_comes_once_over_a_change_of_the_clocks_late_by_its_jitter_at_most(
    clock, connection, night, missed, every
):
    """A time that is skipped has none, one that is there twice has two."""
    jobs = compiled(missed)
    start = NIGHTS[night]
    clock.set(start)
    poll(connection, jobs)
    while clock.now() < start + timedelta(hours=HOURS):
        clock.advance(every * MINUTE)
        poll(connection, jobs)
    fired = connection.execute(FIRED).fetchall()
    expected = {one for one in matching(start) if one[1] <= clock.now()}
    with attack("schedules over changes of the clocks") as row:
        row.cases = len(expected)
        row.lost = len(expected - {one[:2] for one in fired})
        row.doubled = len(fired) - len({one[:2] for one in fired})
    assert sorted(one[:2] for one in fired) == sorted(expected)
    assert all(at <= seen < at + every * MINUTE for _, at, seen, _ in fired)
    assert all(timedelta(0) <= due - seen <= JITTER for _, _, seen, due in fired)
    assert len({due - seen for _, _, seen, due in fired}) > 1
