"""What a finding says to write instead, for what newcomers write."""

from __future__ import annotations

import json

import pytest

from jobspec import check

TICK = {"cron": "0 2 * * *"}


def said(**fields):
    """The message and the help of the one finding about a job."""
    (found,) = check(json.dumps({"jobs": [{"id": "a", "triggers": ["a"]} | fields]}))
    return found.message, found.help


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        (
            {"timezone": "Europe/Berlin"},
            'the zone in the schedule: `triggers: [{cron: "TZ=Europe/Berlin 0 2 * * *"}]`',
        ),
        (
            {"triggers": [TICK | {"timeZone": "Europe/Berlin"}]},
            'write the zone in the schedule: `cron: "TZ=Europe/Berlin 0 2 * * *"`',
        ),
        ({"triggers": [TICK | {"tz": "Europe/Berlin"}]}, '`cron: "TZ=Europe/Berlin 0 2 * * *"`'),
        ({"retry": {"attempts": 3}}, "`retries`, a field of the job, such as `retries: 3`"),
        ({"retry": {"maxAttempts": 3}}, "`retries`, a field of the job, such as `retries: 3`"),
        ({"retry": {"retries": 3}}, "`retries`, a field of the job, such as `retries: 3`"),
        ({"retry": {"backoff": "exponential"}}, "write `policy: exponential` and `delay: 30s`"),
        ({"attempts": 3}, "write `retries`, which does not count the first attempt"),
        ({"backoff": "1m"}, "write `retry: {policy: exponential, delay: 30s}`"),
        ({"debounce": {"period": "1m", "xyz": 1}}, "there are `period`, `key` and `timeout`"),
        ({"retry": 3}, "write `retries: 3`; `retry` says how long to wait"),
        ({"retries": 21}, "write 20 or less"),
        ({"throttle": {"limit": 0, "period": "1m"}}, "write 1 or more"),
        ({"retry": {"jitter": 1.5}}, "write 1 or less"),
        ({"debounce": {"period": "1ms"}}, "write `1s` or more"),
        ({"debounce": {"period": "8d"}}, "write `7d` or less"),
        (
            {"timeouts": {"start": "0s"}},
            "write a length of time such as `30s`, or leave the field out",
        ),
        ({"timeouts": {"start": 10}}, "write it with a unit, such as `10s`"),
        ({"batchEvents": {"maxSize": 5, "timeout": 2}}, "write it with a unit, such as `2s`"),
        ({"name": "a" * 5, "triggers": ["a" * 256]}, "write a shorter one"),
    ],
)
def test_a_finding_says_what_to_write(fields, advice):
    _, help_ = said(**fields)
    assert help_.endswith(advice)


def test_a_number_for_a_length_of_time_is_told_as_one():
    assert (
        said(timeouts={"start": 10})[0]
        == "expected a length of time for `start`, found the number `10`"
    )


@pytest.mark.parametrize("value", [-1, 0])
def test_a_number_that_is_no_length_is_given_no_unit(value):
    assert said(timeouts={"start": value})[1] is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"triggers": [5]},
            "expected the name of an event or a mapping for an item of `triggers`,",
        ),
        ({"cancelOn": ["b"]}, "expected a mapping for an item of `cancelOn`,"),
        ({"concurrency": [5]}, "expected a mapping for an item of `concurrency`,"),
        ({"retry": {"on": ["x:y"]}}, "expected a mapping for an item of `on`,"),
    ],
)
def test_an_item_of_a_list_is_told_as_one(fields, message):
    assert said(**fields)[0].startswith(message)


def test_an_item_of_jobs_is_told_as_one_with_how_to_begin_it():
    (found,) = check("jobs:\n  - foo\n")
    assert found.message == "expected a mapping for an item of `jobs`, found the text `foo`"
    assert found.help == "write `- id:` with the name of the job, and its other fields below"


@pytest.mark.parametrize(("text", "help_"), [("4", "write `4`, without quotes"), ("\u0664", None)])
def test_a_number_in_quotes_is_told_to_go_without_them_where_it_is_one_then(text, help_):
    (found,) = check(f"jobs:\n  - id: a\n    triggers: [{{event: x}}]\n    retries: '{text}'\n")
    assert found.help == help_
