"""Cron schedules beyond the recorded rows: refusals, clock changes, bounds."""

from __future__ import annotations

import pickle
import time
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from itertools import takewhile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobspec.schedules import ClockChange, Schedule, ScheduleError

PART = settings(max_examples=settings.default.max_examples // 20)
YEAR = timedelta(days=364)
START = datetime(2027, 1, 1, tzinfo=UTC)
NUMBERS = "write a number from 0 to 59"


@pytest.mark.parametrize(
    ("text", "place", "message", "advice"),
    [
        (
            "",
            "",
            "a cron schedule is missing here",
            "write minute, hour, day, month and weekday, such as `0 3 * * *`",
        ),
        (
            "* *",
            "* *",
            "a cron schedule has five fields, and this has 2",
            "write minute, hour, day, month and weekday, such as `0 3 * * *`",
        ),
        (
            " 0 0 * * * * ",
            "0 0 * * * *",
            "a cron schedule has five fields, and this has 6",
            "leave out the seconds: the first field is the minute",
        ),
        (
            "@daily",
            "@daily",
            "shorthands are not part of this cron dialect",
            "write `0 0 * * *`",
        ),
        (
            "@every 1h",
            "@every 1h",
            "shorthands are not part of this cron dialect",
            "write minute, hour, day, month and weekday, such as `0 3 * * *`",
        ),
        ("60 * * * *", "60", "`60` is not a minute", NUMBERS),
        ("1.5 * * * *", "1.5", "`1.5` is not a minute", NUMBERS),
        ("\u0665 * * * *", "\u0665", "`\u0665` is not a minute", NUMBERS),
        ("-5 * * * *", "", "a minute is missing here", NUMBERS),
        ("5- * * * *", "", "a minute is missing here", NUMBERS),
        ("* 24 * * *", "24", "`24` is not an hour", "write a number from 0 to 23"),
        ("* * 0 * *", "0", "`0` is not a day of the month", "write a number from 1 to 31"),
        (
            "* * L * *",
            "L",
            "`L` is not a day of the month",
            "`L`, `W` and `#` are not part of this cron dialect",
        ),
        (
            "* * * 13 *",
            "13",
            "`13` is not a month",
            "write a number from 1 to 12, or from JAN to DEC",
        ),
        ("* * * * 7", "7", "`7` is not a weekday", "write `0` or `SUN` for Sunday"),
        (
            "* * * JAN,FOO *",
            "FOO",
            "`FOO` is not a month",
            "write a number from 1 to 12, or from JAN to DEC",
        ),
        (
            "50-10 * * * *",
            "50-10",
            "this range ends before it starts",
            "write two ranges: `50-59,0-10`",
        ),
        ("1-2-3 * * * *", "1-2-3", "a range has two ends", "write `1-5`"),
        ("*/2/3 * * * *", "*/2/3", "a range has one step", "write `*/5`"),
        (
            "*/0 * * * *",
            "0",
            "`0` is not a step",
            "write a whole number from 1, such as `*/5`",
        ),
        (
            "*/x * * * *",
            "x",
            "`x` is not a step",
            "write a whole number from 1, such as `*/5`",
        ),
        (
            "TZ=Europe/Berln 0 3 * * *",
            "Europe/Berln",
            "`Europe/Berln` is not a time zone",
            "did you mean `Europe/Berlin`?",
        ),
        (
            "CRON_TZ=europe/berlin 0 3 * * *",
            "europe/berlin",
            "`europe/berlin` is not a time zone",
            "did you mean `Europe/Berlin`?",
        ),
        (
            "TZ=../../etc/passwd 0 3 * * *",
            "../../etc/passwd",
            "`../../etc/passwd` is not a time zone",
            "write one like `Europe/Berlin`",
        ),
        (
            "TZ=UTC",
            "UTC",
            "a cron schedule is missing behind the zone",
            "write minute, hour, day, month and weekday, such as `0 3 * * *`",
        ),
        (
            " TZ=UTC 0 3 * * *",
            "TZ=UTC 0 3 * * *",
            "a cron schedule has five fields, and this has 6",
            "leave out the seconds: the first field is the minute",
        ),
    ],
)
def test_a_refusal_says_where_and_what_to_write(text, place, message, advice):
    with pytest.raises(ScheduleError) as caught:
        Schedule.parse(text)
    found = caught.value
    assert (str(found), text[slice(*found.span)], found.help) == (message, place, advice)


@pytest.mark.parametrize(
    "name", ["Europe", "zone.tab", "a\0b", "x" * 5000, "/etc/localtime", "Local"]
)
def test_no_name_of_a_zone_breaks_out(name):
    with pytest.raises(ScheduleError, match="is not a time zone"):
        Schedule.parse(f"TZ={name} 0 3 * * *")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1,,2 * * * *", "1,2 * * * *"),
        ("+5 * * * *", "5 * * * *"),
        ("*-x * * * *", "* * * * *"),
        ("05 * * * *", "5 * * * *"),
        ("0 0 * Jan sUn", "0 0 * 1 0"),
        ("TZ= 0 3 * * *", "0 3 * * *"),
        ("5/70 * * * *", "5 * * * *"),
        ("0\u00a03 * *\x0b*", "0 3 * * *"),
    ],
)
def test_oddities_of_the_reference_are_kept(text, same):
    assert Schedule.parse(text).fields == Schedule.parse(same).fields


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("0 0 31 2 *", False),
        ("0 0 30 2 *", False),
        ("0 0 29 2 *", True),
        ("0 0 31 4,6,9,11 *", False),
        ("0 0 31 2 1", True),
        ("0 0 31 2 */2", True),
        (", * * * *", False),
        ("* * , * *", False),
        ("* * , * 1", True),
        ("* * , * ,", False),
        ("* * 1 * ,", True),
        ("* * 31 2 ,", False),
    ],
)
def test_a_schedule_that_no_date_matches_never_fires(text, fires):
    schedule = Schedule.parse(text)
    assert schedule.ever_fires is fires
    assert (schedule.next(START) is not None) is fires


def test_two_schedules_are_equal_where_their_texts_are():
    one, two = Schedule.parse("0 3 * * *"), Schedule.parse("0 3 * * *")
    assert one == two
    assert hash(one) == hash(two)
    assert one != Schedule.parse("0 4 * * *")
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own bytes
    assert one.zone.key == "UTC"
    assert Schedule.parse("TZ=Asia/Tokyo 0 3 * * *").zone.key == "Asia/Tokyo"


def test_a_time_without_a_zone_is_a_mistake():
    schedule = Schedule.parse("0 3 * * *")
    naive = START.replace(tzinfo=None)
    for ask in (schedule.next, schedule.clock_changes, lambda at: next(schedule.upcoming(at))):
        with pytest.raises(ValueError, match="time zone"):
            ask(naive)


def test_times_come_in_utc_whatever_zone_was_asked_in():
    after = datetime(2027, 6, 1, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=2)))
    found = Schedule.parse("TZ=Europe/Berlin 30 12 * * *").next(after)
    assert found == datetime(2027, 6, 1, 10, 30, tzinfo=UTC)
    assert found.tzinfo is UTC


def test_the_end_of_time_is_no_error():
    assert Schedule.parse("* * * * *").next(datetime.max.replace(tzinfo=UTC)) is None
    late = datetime(9999, 6, 1, tzinfo=UTC)
    assert Schedule.parse("0 0 1 1 *").next(late) is None
    assert list(Schedule.parse("0 0 1 12 *").upcoming(late)) == [datetime(9999, 12, 1, tzinfo=UTC)]


BERLIN_SPRING = datetime(2027, 3, 28, 1, tzinfo=UTC)
BERLIN_AUTUMN = datetime(2027, 10, 31, 1, tzinfo=UTC)


def local(*when):
    return datetime(*when)  # noqa: DTZ001 - a wall clock


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("30 3 * * *", []),
        (
            "TZ=Europe/Berlin 30 2 * * *",
            [
                ClockChange("skipped", BERLIN_SPRING, local(2027, 3, 28, 2, 30)),
                ClockChange("repeated", BERLIN_AUTUMN, local(2027, 10, 31, 2, 30)),
            ],
        ),
        ("TZ=Europe/Berlin 30 1 * * *", []),
        ("TZ=Europe/Berlin 0 3 * * *", []),
        ("TZ=Europe/Berlin */10 * * * *", []),
        (
            "TZ=Europe/Berlin 30 2 * 3 *",
            [ClockChange("skipped", BERLIN_SPRING, local(2027, 3, 28, 2, 30))],
        ),
        ("TZ=Europe/Berlin 30 2 * * 1", []),
        (
            "TZ=America/New_York 30 1 * * *",
            [
                ClockChange(
                    "repeated", datetime(2027, 11, 7, 6, tzinfo=UTC), local(2027, 11, 7, 1, 30)
                )
            ],
        ),
        (
            "TZ=Australia/Lord_Howe 45 1 * * *",
            [
                ClockChange(
                    "repeated", datetime(2027, 4, 3, 15, tzinfo=UTC), local(2027, 4, 4, 1, 45)
                ),
                ClockChange(  # the reference walks from 01:59 on to 02:30
                    "repeated", datetime(2027, 10, 2, 15, 30, tzinfo=UTC), local(2027, 10, 3, 2, 45)
                ),
            ],
        ),
        ("TZ=Asia/Tokyo 30 2 * * *", []),
    ],
)
def test_clock_changes_that_a_schedule_meets(text, changes):
    assert list(Schedule.parse(text).clock_changes(START)) == changes


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@settings(max_examples=20)  # each walks through a year
@given(minute=st.integers(0, 59), hour=st.integers(0, 3))
def test_what_clock_changes_says_is_what_happens(zone, minute, hour):
    schedule = Schedule.parse(f"TZ={zone} {minute} {hour} * * *")
    days = YEAR // timedelta(days=1)
    times = takewhile(lambda at: at < START + YEAR, schedule.upcoming(START))
    fired = Counter(at.astimezone(schedule.zone).date() for at in times)
    said = {(change.local.date(), change.kind) for change in schedule.clock_changes(START)}
    first = min(fired)
    assert said == {(day, "repeated") for day, count in fired.items() if count == 2} | {
        (day, "skipped")
        for day in (first + timedelta(days=number) for number in range(days - 2))
        if day not in fired
    }


def test_a_year_of_every_minute_but_one_hour_is_searched_in_little_time():
    started = time.process_time()
    changes = Schedule.parse("TZ=Europe/Berlin * 0-22 * * *").clock_changes(START)
    assert [change.kind for change in changes] == ["skipped", "repeated"]
    assert time.process_time() - started < 1


FIELDS = st.from_regex(r"([0-9*?]{1,2}(-[0-9]{1,2})?(/[0-9]{1,2})?,?){1,3}", fullmatch=True)


@PART
@given(
    st.text()
    | st.lists(
        FIELDS | st.sampled_from(["*", "MON", "feb", "@daily", "TZ=UTC", ","]), max_size=7
    ).map(" ".join)
)
@example("TZ=\ud800 * * * * *")
@example("*/" + "9" * 5000 + " * * * *")
@example("9" * 5000 + " * * * *")
def test_any_text_is_a_schedule_or_is_refused_at_a_place_inside_it(text):
    try:
        schedule = Schedule.parse(text)
    except ScheduleError as error:
        refused = error
    else:
        found = schedule.next(START)
        assert found is None or found > START
        return
    assert 0 <= refused.span.start <= refused.span.end <= len(text)
    assert len(str(refused).splitlines()) == 1
    assert refused.help


@PART
@given(
    st.tuples(FIELDS, FIELDS, FIELDS, FIELDS, FIELDS).map(" ".join),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/Sao_Paulo"]),
    st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1)),  # noqa: DTZ001 - made aware below
)
def test_the_next_time_matches_the_fields_and_is_the_first_that_does(fields, zone, after):
    text = f"TZ={zone} {fields}"
    schedule = parsed(text)
    if schedule is None:
        return
    after = after.replace(tzinfo=UTC)
    found = schedule.next(after)
    if found is None:
        return
    assert schedule.fields.match(found.astimezone(schedule.zone))
    assert (found.second, found.microsecond) == (0, 0)
    assert found > after
    between = schedule.next(found - timedelta(seconds=1))
    assert between == found


def parsed(text):
    try:
        return Schedule.parse(text)
    except ScheduleError:
        return None
