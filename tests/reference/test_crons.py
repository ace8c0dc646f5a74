"""Every cron schedule that the reference was asked about: accepted or not, and its next times."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from jobspec.schedules import Schedule, ScheduleError
from vectors import rows


def upcoming(text, start):
    try:
        schedule = Schedule.parse(text)
    except ScheduleError:
        return None
    times = islice(schedule.upcoming(datetime.fromisoformat(start)), 5)
    return [time.strftime("%Y-%m-%dT%H:%M:%SZ") for time in times]


def test_every_schedule_fires_when_the_reference_says():
    found = [
        (row["cron"], row["from"], upcoming(row["cron"], row["from"]), row["next"])
        for row in rows("crons")
    ]
    assert [row for row in found if row[2] != row[3]] == []


def test_a_schedule_never_fires_exactly_where_the_reference_finds_no_time():
    for row in rows("crons"):
        if row["next"] is not None:
            assert Schedule.parse(row["cron"]).ever_fires == bool(row["next"]), row
