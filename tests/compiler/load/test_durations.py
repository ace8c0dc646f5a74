"""Durations beyond the recorded rows: where they refuse, and what they say to write."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobspec.durations import (
    DurationError,
    format_duration,
    go_nanoseconds,
    nanoseconds,
    parse_duration,
    parse_go_duration,
)

PART = settings(max_examples=settings.default.max_examples // 10)

UNITS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
    "w": 604800 * 10**9,
}


@pytest.mark.parametrize(
    ("text", "place", "message", "advice"),
    [
        ("", "", "a duration is missing here", "write `90s`, `2m` or `1h30m`"),
        ("-", "-", "a duration is missing here", "write `90s`, `2m` or `1h30m`"),
        ("5", "5", "this number has no unit", "write `5s` for seconds, `5m` for minutes"),
        ("1h30", "30", "this number has no unit", "write `90s`, `2m` or `1h30m`"),
        ("2 m", " ", "a duration has no spaces", "write `2m`"),
        ("5m ", " ", "a duration has no spaces", "write `5m`"),
        (" 5m", " ", "a duration has no spaces", "write `5m`"),
        ("5 minutes", " ", "a duration has no spaces", "write `5m`"),
        ("1 hour and 5 mins", " ", "a duration has no spaces", "write `1h5m`"),
        ("1 day, 2 hours", " ", "a duration has no spaces", "write `1d2h`"),
        ("10sec", "sec", "`sec` is not a unit of time", "write `10s`"),
        ("1H", "H", "`H` is not a unit of time", "write `1h`"),
        (
            "1M",
            "M",
            "`M` is not a unit of time",
            "months and years have no fixed length, write days: `30d`; a minute is `1m`",
        ),
        (
            "2 years",
            " ",
            "a duration has no spaces",
            "months and years have no fixed length, write days: `30d`; a minute is `1m`",
        ),
        ("PT5M", "PT5M", "a duration starts with a number", "write `5m`"),
        ("P1DT2H", "P1DT2H", "a duration starts with a number", "write `1d2h`"),
        ("P", "P", "a duration starts with a number", "write `90s`, `2m` or `1h30m`"),
        ("00:05:00", ":", "`:` is not a unit of time", "write `5m`"),
        ("1:30", ":", "`:` is not a unit of time", "write `1h30m`"),
        ("1,5h", ",", "`,` is not a unit of time", "write `1h30m`"),
        ("1_000s", "_", "`_` is not a unit of time", "write `16m40s`"),
        (
            "1h-30m",
            "-",
            "a sign stands only in front of a duration",
            "write `90s`, `2m` or `1h30m`",
        ),
        (
            "--1s",
            "-",
            "a sign stands only in front of a duration",
            "write `90s`, `2m` or `1h30m`",
        ),
        ("1h.m", ".", "this point has no digits around it", "write `90s`, `2m` or `1h30m`"),
        (
            "300000w",
            "300000w",
            "this is longer than a duration can be, about 292 years",
            "write `90s`, `2m` or `1h30m`",
        ),
    ],
)
def test_a_refusal_says_where_and_what_to_write(text, place, message, advice):
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    found = caught.value
    assert (str(found), text[slice(*found.span)], found.help) == (message, place, advice)


def test_the_dialect_of_go_has_no_days_and_says_the_hours():
    with pytest.raises(DurationError, match="`d` is not a unit of this option") as caught:
        parse_go_duration("1d12h")
    assert caught.value.help == "write `36h`"


def test_go_reaches_one_nanosecond_further_down_than_str2duration():
    lowest = f"-{2**63}ns"
    assert go_nanoseconds(lowest) == -(2**63)
    for refused in (lambda: nanoseconds(lowest), lambda: go_nanoseconds(lowest[1:])):
        with pytest.raises(DurationError):
            refused()


def test_a_fraction_keeps_the_digits_that_fit_into_64_bits():
    digits = str(2**63)
    assert nanoseconds(f"0.{digits}w") == go_like(int(digits[:-1]), len(digits) - 1)
    assert nanoseconds("0." + "3" * 100_000 + "s") == 333_333_333


def go_like(value, digits):
    scale = 1.0
    for _ in range(digits):
        scale *= 10
    return int(float(value) * (float(UNITS["w"]) / scale))


def test_what_is_finer_than_a_microsecond_rounds_up_away_from_zero():
    microsecond = timedelta(microseconds=1)
    assert parse_duration("1ns") == parse_duration("1us") == microsecond
    assert parse_duration("-1ns") == -microsecond
    assert parse_duration("7d1ns") > timedelta(days=7)
    assert parse_go_duration("1001ns") == 2 * microsecond


@PART
@given(
    st.sampled_from(["", "+", "-"]),
    st.lists(
        st.tuples(st.integers(0, 1000), st.sampled_from(sorted(UNITS))), min_size=1, max_size=9
    ),
)
def test_whole_numbers_sum_exactly(sign, parts):
    text = sign + "".join(f"{count}{unit}" for count, unit in parts)
    total = sum(count * UNITS[unit] for count, unit in parts)
    assert nanoseconds(text) == (-total if sign == "-" else total)


@PART
@given(st.timedeltas(min_value=timedelta(days=-100_000), max_value=timedelta(days=100_000)))
def test_a_formatted_length_reads_back(length):
    assert parse_duration(format_duration(length)) == length


@PART
@given(
    st.text()
    | st.from_regex(
        r"[-+]?([0-9]{0,20}(\.[0-9]{0,25})?(ns|us|ms|s|m|h|d|w|x| )?){0,4}", fullmatch=True
    )
)
@example("P" + "1" * 5000 + "D")
@example("1" * 5000)
def test_any_text_is_a_duration_or_is_refused_at_a_place_inside_it(text):
    for read in (parse_duration, parse_go_duration):
        refused = refusal(read, text)
        if refused is not None:
            assert 0 <= refused.span.start <= refused.span.end <= len(text)
            assert refused.help
            assert len(str(refused).splitlines()) == 1


def refusal(read, text):
    try:
        read(text)
    except DurationError as refused:
        return refused
    return None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (90, "1m30s"), (604_800, "7d"), (-5400, "-1h30m"), (0.25, "250ms")],
)
def test_a_length_is_written_in_its_largest_units(seconds, text):
    assert format_duration(timedelta(seconds=seconds)) == text
