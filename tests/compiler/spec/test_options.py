"""What each option takes and refuses, and where a refusal stands."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from jobspec import check, compile


def job(**fields):
    return json.dumps({"jobs": [{"id": "a", "triggers": [{"event": "a"}]} | fields]})


def findings(**fields):
    """The findings about a job with these fields: pairs of a code and the text it is at."""
    return [(one.code, text_at(one)) for one in check(job(**fields))]


def text_at(found):
    return found.source.text[found.span.start : found.span.end]


KEY_FAULT = "event.data.a + event.data.b.c +"

REFUSED = {
    "a retry less than none": ({"retries": -1}, [("JS305", "-1")]),
    "more retries than 20": ({"retries": 21}, [("JS305", "21")]),
    "half a retry": ({"retries": 1.5}, [("JS303", "1.5")]),
    "a boolean for a number": ({"retries": True}, [("JS303", "true")]),
    "a number for a text": ({"name": 5}, [("JS303", "5")]),
    "a list for a text": ({"name": [5]}, [("JS303", "5")]),
    "an empty name": ({"name": ""}, [("JS307", '""')]),
    "no value": ({"name": None}, [("JS303", "null")]),
    "a field that does not exist": ({"debonce": 1}, [("JS301", '"debonce"')]),
    "an idempotency without a key": ({"idempotency": {}}, [("JS302", '"idempotency"')]),
    "a window that is neither a word nor a length of time": (
        {"idempotency": {"key": "event.data.a", "window": "always"}},
        [("JS304", '"always"')],
    ),
    "a window of a length that is none": (
        {"idempotency": {"key": "event.data.a", "window": "24 hours"}},
        [("JS170", " ")],
    ),
    "a window of less than a second": (
        {"idempotency": {"key": "event.data.a", "window": "10ms"}},
        [("JS305", '"10ms"')],
    ),
    "a number for a window": (
        {"idempotency": {"key": "event.data.a", "window": 24}},
        [("JS303", "24")],
    ),
    "a list for a key": ({"idempotency": ["x"]}, [("JS303", '"x"')]),
    "a debounce without a period": ({"debounce": {}}, [("JS302", '"debounce"')]),
    "a text for a mapping": ({"debounce": "2m"}, [("JS303", '"2m"')]),
    "a debounce of less than a second": ({"debounce": {"period": "999ms"}}, [("JS305", '"999ms"')]),
    "a debounce of more than a week": ({"debounce": {"period": "169h"}}, [("JS305", '"169h"')]),
    "a debounce timeout of nothing": (
        {"debounce": {"period": "1s", "timeout": "0"}},
        [("JS305", '"0"')],
    ),
    "a debounce timeout below the period": (
        {"debounce": {"period": "2m", "timeout": "119s"}},
        [("JS400", '"119s"')],
    ),
    "a duration that is none": ({"debounce": {"period": "banana"}}, [("JS170", "banana")]),
    "a rate of none": ({"rateLimit": {"limit": 0, "period": "1m"}}, [("JS305", "0")]),
    "a rate over more than a day": (
        {"rateLimit": {"limit": 1, "period": "25h"}},
        [("JS305", '"25h"')],
    ),
    "a rate over no time": ({"rateLimit": {"limit": 1, "period": "-1m"}}, [("JS305", '"-1m"')]),
    "a throttle to none": ({"throttle": {"limit": 0, "period": "1m"}}, [("JS305", "0")]),
    "a throttle without a limit": ({"throttle": {"period": "1m"}}, [("JS302", '"throttle"')]),
    "a negative burst": (
        {"throttle": {"limit": 1, "period": "1m", "burst": -1}},
        [("JS305", "-1")],
    ),
    "a concurrency that is a text": ({"concurrency": "5"}, [("JS303", '"5"')]),
    "a concurrency below nothing": ({"concurrency": -1}, [("JS305", "-1")]),
    "a concurrency of nothing": ({"concurrency": 0}, [("JS409", "0")]),
    "a limit of nothing": ({"concurrency": {"limit": 0}}, [("JS409", "0")]),
    "no limits": ({"concurrency": []}, [("JS415", "[]")]),
    "no cancellations": ({"cancelOn": []}, [("JS415", "[]")]),
    "no timeouts": ({"timeouts": {}}, [("JS415", "{}")]),
    "no policy": ({"retry": {}}, [("JS415", "{}")]),
    "no policies of errors": ({"retry": {"policy": "reference", "on": []}}, [("JS415", "[]")]),
    "a number among limits": ({"concurrency": [5]}, [("JS303", "5")]),
    "three limits": ({"concurrency": [{"limit": 1}] * 3}, [("JS306", '"limit"')]),
    "a scope that does not exist": (
        {"concurrency": {"limit": 1, "scope": "all"}},
        [("JS304", '"all"')],
    ),
    "a scope of many without a key": (
        {"concurrency": {"limit": 1, "scope": "env"}},
        [("JS314", '"env"')],
    ),
    "a batch of one": ({"batchEvents": {"maxSize": 1, "timeout": "5s"}}, [("JS305", "1")]),
    "a batch gathered in no time": (
        {"batchEvents": {"maxSize": 2, "timeout": "999ms"}},
        [("JS305", '"999ms"')],
    ),
    "a batch of days, which Go does not know": (
        {"batchEvents": {"maxSize": 2, "timeout": "1d"}},
        [("JS170", "d")],
    ),
    "a batch with a condition cut short": (
        {"batchEvents": {"maxSize": 2, "timeout": "1s", "if": "event.data.a =="}},
        [("JS140", "")],
    ),
    "a singleton without a mode": ({"singleton": {}}, [("JS302", '"singleton"')]),
    "a mode that does not exist": ({"singleton": {"mode": "stop"}}, [("JS304", '"stop"')]),
    "a priority without an expression": ({"priority": {}}, [("JS302", '"priority"')]),
    "a priority that is no number": ({"priority": {"run": "'high'"}}, [("JS149", "'high'")]),
    "a cancellation without an event": ({"cancelOn": [{"if": "true"}]}, [("JS302", '"if"')]),
    "a cancellation of every run": ({"cancelOn": [{"event": "b"}]}, [("JS407", '"b"')]),
    "a cancellation with a call": (
        {"cancelOn": [{"event": "b", "if": "size(event.data.a) == 1"}]},
        [("JS403", "size")],
    ),
    "six cancellations": (
        {"cancelOn": [{"event": "b", "match": "data.id"}] * 6},
        [("JS306", '"event"')],
    ),
    "a cancellation timeout that is none": (
        {"cancelOn": [{"event": "b", "match": "data.id", "timeout": "banana"}]},
        [("JS170", "banana")],
    ),
    "a start after no time": ({"timeouts": {"start": "-3s"}}, [("JS305", '"-3s"')]),
    "a finish that is no duration": ({"timeouts": {"finish": "banana"}}, [("JS170", "banana")]),
    "an attempt of no time": ({"timeouts": {"attempt": "0s"}}, [("JS305", '"0s"')]),
    "a text for how to retry": ({"retry": "fixed"}, [("JS303", '"fixed"')]),
    "a way to retry that does not exist": (
        {"retry": {"policy": "linear"}},
        [("JS304", '"linear"')],
    ),
    "a job that is never retried by policy": (
        {"retry": {"policy": "never"}},
        [("JS304", '"never"')],
    ),
    "a fixed wait of no length": ({"retry": {"policy": "fixed"}}, [("JS302", '"retry"')]),
    "a growing wait of no length": ({"retry": {"policy": "exponential"}}, [("JS302", '"retry"')]),
    "a wait of more than a week": (
        {"retry": {"policy": "fixed", "delay": "8d"}},
        [("JS305", '"8d"')],
    ),
    "a wait beside the table": ({"retry": {"delay": "5s"}}, [("JS318", '"delay"')]),
    "a growth beside a fixed wait": (
        {"retry": {"policy": "fixed", "delay": "5s", "factor": 2, "max": "1h"}},
        [("JS318", '"factor"'), ("JS318", '"max"')],
    ),
    "a wait that never grows": (
        {"retry": {"policy": "exponential", "delay": "1h", "max": "1m"}},
        [("JS410", '"1m"')],
    ),
    "a wait that shrinks": (
        {"retry": {"policy": "exponential", "delay": "1s", "factor": 0.5}},
        [("JS305", "0.5")],
    ),
    "a jitter of more than all": ({"retry": {"jitter": 1.5}}, [("JS305", "1.5")]),
    "a jitter that is no number": ({"retry": {"jitter": "20%"}}, [("JS303", '"20%"')]),
    "a mapping for errors": ({"retry": {"on": {"a": 1}}}, [("JS303", '"a"')]),
    "an error that is no class": (
        {"retry": {"on": [{"error": "ValueError", "policy": "never"}]}},
        [("JS319", '"ValueError"')],
    ),
    "an error without a policy": (
        {"retry": {"on": [{"error": "builtins:ValueError"}]}},
        [("JS302", '"error"')],
    ),
    "a wait after errors that are never retried": (
        {"retry": {"on": [{"error": "builtins:ValueError", "policy": "never", "delay": "1s"}]}},
        [("JS318", '"delay"')],
    ),
    "a policy that does not exist": ({"on_missing": "fail"}, [("JS304", '"fail"')]),
    "a handler without a module": ({"handler": "send"}, [("JS316", '"send"')]),
    "a handler that is a path": ({"handler": "app/jobs.py:f"}, [("JS316", '"app/jobs.py:f"')]),
    "idempotency with a rate limit": (
        {"idempotency": "event.data.a", "rateLimit": {"limit": 1, "period": "1h"}},
        [("JS401", '"rateLimit"')],
    ),
    "a faulty key for idempotency": ({"idempotency": KEY_FAULT}, [("JS106", "+")]),
    "a faulty key in a mapping": ({"idempotency": {"key": KEY_FAULT}}, [("JS106", "+")]),
    "a faulty key for debounce": (
        {"debounce": {"period": "1s", "key": KEY_FAULT}},
        [("JS106", "+")],
    ),
    "a faulty key for a rate limit": (
        {"rateLimit": {"limit": 1, "period": "1s", "key": KEY_FAULT}},
        [("JS106", "+")],
    ),
    "a faulty key for a throttle": (
        {"throttle": {"limit": 1, "period": "1s", "key": KEY_FAULT}},
        [("JS106", "+")],
    ),
    "a faulty key for concurrency": (
        {"concurrency": {"limit": 1, "key": KEY_FAULT}},
        [("JS106", "+")],
    ),
    "a faulty key for batches": (
        {"batchEvents": {"maxSize": 2, "timeout": "1s", "key": KEY_FAULT}},
        [("JS106", "+")],
    ),
    "a faulty key for a singleton": (
        {"singleton": {"mode": "skip", "key": KEY_FAULT}},
        [("JS106", "+")],
    ),
}


@pytest.mark.parametrize(("fields", "expected"), REFUSED.values(), ids=REFUSED)
def test_a_fault_is_found_at_its_place(fields, expected):
    assert findings(**fields) == expected


@pytest.mark.parametrize(
    ("window", "typed"),
    [("forever", "forever"), ("while-active", "while-active"), ("24h", timedelta(days=1))],
)
def test_an_idempotency_key_counts_for_its_window(window, typed):
    read = compile(job(idempotency={"key": "event.data.a", "window": window}))["a"]
    assert read.idempotency.window == typed


def test_an_idempotency_key_counts_for_good_where_nothing_is_said():
    assert compile(job(idempotency="event.data.a"))["a"].idempotency.window == "forever"
    assert compile(job(idempotency={"key": "event.data.a"}))["a"].idempotency.window == "forever"


@pytest.mark.parametrize(
    "fields",
    [
        {"retries": 0},
        {"retries": 20},
        {"debounce": {"period": "1s"}},
        {"debounce": {"period": "7d", "timeout": "7d"}},
        {"rateLimit": {"limit": 1, "period": "24h"}},
        {"throttle": {"limit": 1, "period": "1ms", "burst": 0}},
        {"concurrency": [{"limit": 1}, {"limit": 2, "scope": "fn"}]},
        {"batchEvents": {"maxSize": 2, "timeout": "1s"}},
        {"cancelOn": [{"event": "b", "match": "data.id"}] * 5},
        {"timeouts": {"start": "1h", "finish": "2h", "attempt": "1s"}},
        {"retry": {"policy": "exponential", "delay": "1s", "max": "7d", "factor": 1, "jitter": 1}},
        {"retry": {"policy": "fixed", "delay": "7d", "jitter": 0}},
        {"handler": "app.jobs:Jobs.send"},
    ],
)
def test_a_value_at_its_limit_is_fine(fields):
    assert findings(**fields) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("debounce", {"period": "2m"}),
        ("singleton", {"mode": "skip"}),
        ("cancelOn", [{"event": "b", "match": "data.id"}]),
        ("priority", {"run": "100"}),
    ],
)
def test_batches_exclude_options_about_one_event(option, value):
    batch = {"maxSize": 2, "timeout": "1s"}
    assert findings(batchEvents=batch, **{option: value}) == [("JS402", f'"{option}"')]


def test_a_concurrency_of_nothing_is_no_limit():
    assert compile(job(concurrency=0))["a"].concurrency == ()


def test_a_burst_that_is_not_written_is_that_of_the_references_sdk():
    assert compile(job(throttle={"limit": 1, "period": "1m"}))["a"].throttle.burst == 1
    assert compile(job(throttle={"limit": 1, "period": "1m", "burst": 0}))["a"].throttle.burst == 0


def test_every_fault_of_an_option_is_found_at_once():
    found = findings(
        debounce={"perido": "1s", "key": KEY_FAULT, "timeout": "x", "mode": "skip"},
        batchEvents={"maxSize": "many", "timeout": "1 s"},
    )
    assert [code for code, _ in found] == [
        "JS402",
        "JS301",
        "JS106",
        "JS170",
        "JS301",
        "JS303",
        "JS170",
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("rate_limit", "rateLimit"),
        ("ratelimit", "rateLimit"),
        ("cancel", "cancelOn"),
        ("batch", "batchEvents"),
        ("debonce", "debounce"),
        ("retrys", "retry"),
        ("timeout", "timeouts"),
        ("function", "handler"),
    ],
)
def test_a_field_that_does_not_exist_gets_the_name_that_was_meant(written, meant):
    (found,) = check(job(**{written: 1}))
    assert found.help == f"did you mean `{meant}`?"


def test_a_field_like_no_other_gets_a_list_of_those_there_are():
    (found,) = check(job(zzz=1))
    assert found.help.startswith("there are `id`, `triggers`, `name`")


def test_a_misspelt_field_is_not_reported_as_missing_too():
    assert findings(debounce={"peroid": "2m"}) == [("JS301", '"peroid"')]


def test_null_values_and_empty_shapes_of_every_field_are_findings_and_no_exception():

    options = ("handler", "idempotency", "debounce", "rateLimit", "throttle", "concurrency")
    options += ("priority", "batchEvents", "singleton", "cancelOn", "timeouts", "triggers")
    for name in options:
        for value in (None, "", {}, [], [[]], [{}], 0, -1, 1.5, True, "x", {"": None}):
            for found in check(job(**{name: value})):
                assert 0 <= found.span.start <= found.span.end <= len(found.source.text)


@pytest.mark.parametrize(
    ("written", "help_"),
    [(4.0, "write `4`"), (4.5, "leave the fraction out"), (1e300, None)],
)
def test_a_number_that_is_not_whole_is_told_how_to_be(written, help_):
    assert [(found.code, found.help) for found in check(job(retries=written))] == [("JS303", help_)]
