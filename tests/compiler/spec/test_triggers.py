"""What a trigger may be."""

from __future__ import annotations

import json

import pytest

from jobspec import check


def findings(*triggers):
    text = json.dumps({"jobs": [{"id": "a", "triggers": list(triggers)}]})
    return [
        (one.code, one.source.text[one.span.start : one.span.end].strip('"')) for one in check(text)
    ]


REFUSED = {
    "none": ([], [("JS408", "[]")]),
    "a number": ([5], [("JS303", "5")]),
    "a list": ([["a"]], [("JS303", "a")]),
    "nothing in it": ([{}], [("JS311", "{}")]),
    "only a condition": ([{"if": "true"}], [("JS311", "if")]),
    "an event and a schedule": ([{"event": "a", "cron": "0 3 * * *"}], [("JS312", "cron")]),
    "an event without a name": ([{"event": ""}], [("JS307", "")]),
    "an event with a long name": ([{"event": "x" * 256}], [("JS308", "x" * 256)]),
    "a short form with a long name": (["x" * 256], [("JS308", "x" * 256)]),
    "a condition cut short": ([{"event": "a", "if": "event.data.n >"}], [("JS140", "")]),
    "a schedule that is none": ([{"cron": "bad"}], [("JS180", "bad")]),
    "a schedule that never fires": ([{"cron": "0 0 31 2 *"}], [("JS404", "0 0 31 2 *")]),
    "a schedule in a skipped hour": (
        [{"cron": "TZ=America/New_York 30 2 * * *"}],
        [("JS405", "TZ=America/New_York 30 2 * * *")],
    ),
    "a condition beside a schedule": ([{"cron": "0 3 * * *", "if": "true"}], [("JS315", "if")]),
    "a jitter beside an event": ([{"event": "a", "jitter": "5s"}], [("JS315", "jitter")]),
    "missed ticks of an event": ([{"event": "a", "missed": "all"}], [("JS315", "missed")]),
    "missed ticks of no kind": ([{"cron": "0 3 * * *", "missed": "twice"}], [("JS304", "twice")]),
    "a jitter of more than five minutes": (
        [{"cron": "0 3 * * *", "jitter": "301s"}],
        [("JS305", "301s")],
    ),
    "one event twice": ([{"event": "a"}, "a"], [("JS310", "a")]),
    "one schedule twice": (
        [{"cron": "0 3 * * *"}, {"cron": "0 3 * * *"}],
        [("JS310", "0 3 * * *")],
    ),
    "eleven": ([{"event": f"e{n}"} for n in range(11)], [("JS306", "event")]),
}


@pytest.mark.parametrize(("triggers", "expected"), REFUSED.values(), ids=REFUSED)
def test_a_trigger_that_starts_nothing_is_found_at_its_place(triggers, expected):
    assert findings(*triggers) == expected


@pytest.mark.parametrize(
    "trigger",
    [
        "a",
        {"event": "x" * 255},
        {"event": "a", "if": "event.data.n > 5"},
        {"cron": "0 3 * * *", "jitter": "5m"},
        {"cron": "0 3 * * *", "missed": "skip"},
        {"cron": "TZ=Europe/Berlin 30 4 * * *"},
    ],
)
def test_a_trigger_is_an_event_or_a_schedule(trigger):
    assert findings(trigger) == []


def test_ten_triggers_are_fine():
    assert findings(*({"event": f"e{n}"} for n in range(10))) == []


def test_a_schedule_that_meets_a_clock_change_says_what_the_clocks_do():
    text = json.dumps(
        {"jobs": [{"id": "a", "triggers": [{"cron": "TZ=Europe/Berlin 30 2 * * *"}]}]}
    )
    (found,) = check(text)
    assert found.message == (
        "when the clocks of `Europe/Berlin` change, they skip 02:30 and repeat 02:30"
    )
