"""Keys of jobs that cron schedules start are held to what the event of a tick has."""

from __future__ import annotations

import json

import pytest

from jobspec import check

TICK = {"cron": "5 4 * * *"}
EVENT = {"event": "a"}


def findings(triggers, key="event.data.id", **fields):
    spec = {"id": "a", "triggers": triggers, "debounce": {"key": key, "period": "1m"}} | fields
    written = {name: value for name, value in spec.items() if value is not None}
    found = check(json.dumps({"jobs": [written]}))
    return [(one.code, one.source.text[slice(*one.span)]) for one in found]


@pytest.mark.parametrize(
    ("triggers", "expected"),
    [
        ([TICK], [("JS438", "event.data.id")]),
        ([TICK, {"cron": "6 4 * * *"}], [("JS438", "event.data.id")]),
        ([TICK, EVENT], [("JS439", "event.data.id")]),
        (["a", TICK], [("JS439", "event.data.id")]),
        ([EVENT], []),
        (["a"], []),
        ([], [("JS408", "[]")]),
    ],
)
def test_a_key_of_a_job_with_ticks_reads_what_they_have(triggers, expected):
    assert findings(triggers) == expected


def test_the_schedule_is_a_field_of_a_tick_and_nothing_is_below_it():
    assert findings([TICK], "event.data.cron") == []
    assert findings([TICK], "event.data.cron.id") == [("JS438", "event.data.cron.id")]


def test_each_field_of_a_key_is_found_where_it_stands():
    key = "event.data.cron + '/' + event.data.a + '/' + event.data.b"
    assert findings([TICK], key) == [("JS438", "event.data.a"), ("JS438", "event.data.b")]


def test_a_key_of_any_option_is_looked_at():
    fields = {"debounce": None, "idempotency": "event.data.id"}
    assert ("JS438", "event.data.id") in findings([TICK], **fields)


def test_an_event_that_can_not_be_read_is_none_the_less_one():
    assert [code for code, _ in findings([TICK, {"event": 5}])] == ["JS303", "JS439"]


@pytest.mark.parametrize(
    ("triggers", "idempotency", "expected"),
    [
        ([TICK], "event.data.cron", ["JS416"]),
        ([TICK, {"cron": "6 4 * * *"}], "'x/' + event.data.cron", ["JS416"]),
        ([TICK], {"key": "event.data.cron", "window": "forever"}, ["JS416"]),
        ([TICK], {"key": "event.data.cron", "window": "while-active"}, []),
        ([TICK], {"key": "event.data.cron", "window": "24h"}, []),
        ([TICK], "event.data.cron + '/' + event.data.id", ["JS438"]),
        ([TICK], "'x'", ["JS432"]),
        ([TICK, EVENT], "event.data.cron", []),
        ([EVENT], "event.data.cron", []),
    ],
)
def test_a_key_that_every_tick_has_is_none_that_counts_for_good(triggers, idempotency, expected):
    found = findings(triggers, debounce=None, idempotency=idempotency)
    assert [code for code, _ in found] == expected


def test_the_whole_key_that_every_tick_has_is_underlined():
    key = "'x/' + event.data.cron"
    assert findings([TICK], debounce=None, idempotency=key) == [("JS416", key)]
