"""What changes from one set of jobs to another, and what that means for what is in flight."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobspec import KeyTemplate, compile
from jobspec.diff import Harm, differences
from jobspec.diff.changes import meaning


def job(**fields):
    return {"id": "a", "triggers": [{"event": "a"}], "handler": "app:a", **fields}


def jobs(*specs):
    return compile(json.dumps({"jobs": list(specs)}))


def changes(old, new):
    """The changes of one job: its option, its harm, and what it shows."""
    found = differences(jobs(job(**old)), jobs(job(**new)))
    return [(change.option, change.harm.value, change.old, change.new) for change in found]


KEY, OTHER = "event.data.a + '/' + event.data.b", "event.data.b"
DEBOUNCE = {"key": KEY, "period": "2m", "timeout": "15m"}

SAME = {
    "white space of a key": ({"idempotency": KEY}, {"idempotency": KEY.replace(" ", "")}),
    "quotes of a key": ({"idempotency": KEY}, {"idempotency": KEY.replace("'", '"')}),
    "a text in two parts": (
        {"idempotency": "'a:' + " + KEY},
        {"idempotency": "'a' + ':' + " + KEY},
    ),
    "a key in a mapping": (
        {"idempotency": KEY},
        {"idempotency": {"key": KEY, "window": "forever"}},
    ),
    "the unit of a duration": ({"debounce": {"period": "2m"}}, {"debounce": {"period": "120s"}}),
    "the order of triggers": ({"triggers": ["a", "b"]}, {"triggers": ["b", {"event": "a"}]}),
    "white space of a condition": (
        {"triggers": [{"event": "a", "if": "event.data.a == 'x  y'"}]},
        {"triggers": [{"event": "a", "if": "event.data.a  ==\n'x  y'"}]},
    ),
    "a default that is written": ({}, {"retries": 4, "on_missing": "skip"}),
    "a limit in a list": ({"concurrency": 5}, {"concurrency": [{"limit": 5, "scope": "fn"}]}),
    "the name": ({}, {"name": "Send"}),
}
CHANGED = {
    "idempotency added": ({}, {"idempotency": KEY}, [("idempotency", "none")]),
    "idempotency removed": ({"idempotency": KEY}, {}, [("idempotency", "re-runs")]),
    "idempotency key": (
        {"idempotency": KEY},
        {"idempotency": OTHER},
        [("idempotency.key", "re-runs")],
    ),
    "white space in a text of a key": (
        {"idempotency": "'a ' + " + KEY},
        {"idempotency": "'a' + " + KEY},
        [("idempotency.key", "re-runs")],
    ),
    "idempotency for less long": (
        {"idempotency": KEY},
        {"idempotency": {"key": KEY, "window": "24h"}},
        [("idempotency.window", "re-runs")],
    ),
    "idempotency while active": (
        {"idempotency": {"key": KEY, "window": "24h"}},
        {"idempotency": {"key": KEY, "window": "while-active"}},
        [("idempotency.window", "re-runs")],
    ),
    "idempotency for longer": (
        {"idempotency": {"key": KEY, "window": "24h"}},
        {"idempotency": {"key": KEY, "window": "2d"}},
        [("idempotency.window", "none")],
    ),
    "idempotency for good": (
        {"idempotency": {"key": KEY, "window": "while-active"}},
        {"idempotency": KEY},
        [("idempotency.window", "none")],
    ),
    "debounce added": ({}, {"debounce": DEBOUNCE}, [("debounce", "none")]),
    "debounce removed": ({"debounce": DEBOUNCE}, {}, [("debounce", "none")]),
    "debounce key": (
        {"debounce": DEBOUNCE},
        {"debounce": DEBOUNCE | {"key": OTHER}},
        [("debounce.key", "splits")],
    ),
    "debounce times": (
        {"debounce": DEBOUNCE},
        {"debounce": DEBOUNCE | {"period": "3m", "timeout": "20m"}},
        [("debounce.period", "none"), ("debounce.timeout", "none")],
    ),
    "rate limit": (
        {"rateLimit": {"limit": 1, "period": "1m", "key": KEY}},
        {"rateLimit": {"limit": 2, "period": "1m", "key": OTHER}},
        [("rateLimit.limit", "none"), ("rateLimit.key", "splits")],
    ),
    "singleton key": (
        {"singleton": {"mode": "skip", "key": KEY}},
        {"singleton": {"mode": "cancel", "key": OTHER}},
        [("singleton.mode", "none"), ("singleton.key", "splits")],
    ),
    "concurrency": ({"concurrency": 5}, {"concurrency": 6}, [("concurrency", "splits")]),
    "retries": ({}, {"retries": 0}, [("retries", "none")]),
    "a trigger more": ({}, {"triggers": ["a", "b"]}, [("triggers", "none")]),
    "another trigger": (
        {},
        {"triggers": [{"cron": "5 4 * * *"}]},
        [("triggers", "none"), ("triggers", "none")],
    ),
    "what becomes of missed ticks": (
        {"triggers": [{"cron": "5 4 * * *"}]},
        {"triggers": [{"cron": "5 4 * * *", "missed": "all", "jitter": "1m"}]},
        [("triggers", "none"), ("triggers", "none")],
    ),
    "handler": ({}, {"handler": "app:b"}, [("handler", "none")]),
    "cancellations": (
        {},
        {"cancelOn": [{"event": "b", "match": "data.id"}]},
        [("cancelOn", "none")],
    ),
    "timeouts": ({}, {"timeouts": {"start": "1m"}}, [("timeouts", "none")]),
    "on_missing": ({}, {"on_missing": "reject"}, [("on_missing", "none")]),
}


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_what_means_the_same_is_no_change(old, new):
    assert changes(old, new) == []


@pytest.mark.parametrize(("old", "new", "expected"), CHANGED.values(), ids=CHANGED)
def test_a_change_is_named_with_its_harm(old, new, expected):
    assert [(option, harm) for option, harm, _, _ in changes(old, new)] == expected


def test_a_change_shows_both_sides_as_a_spec_has_them():
    (change,) = changes({"debounce": {"period": "120s"}}, {"debounce": {"period": "90m"}})
    assert change == ("debounce.period", "none", "2m", "1h30m")


def test_every_option_of_a_job_is_compared():
    from dataclasses import fields

    from jobspec.diff.changes import _OPTIONS
    from jobspec.jobs import CompiledJob

    assert {one.name for one in fields(CompiledJob)} == {*_OPTIONS, "id", "name", "triggers"}


def test_jobs_are_added_and_removed():
    found = differences(jobs(job(id="a")), jobs(job(id="b", triggers=["b"])))
    assert [(one.job, one.old, one.new, one.harm) for one in found] == [
        ("b", None, "b", Harm.NONE),
        ("a", "a", None, Harm.STRANDS),
    ]


def test_a_job_that_changes_its_id_alone_is_a_renamed_one():
    (found,) = differences(jobs(job(id="a")), jobs(job(id="b")))
    assert (found.job, found.old, found.new, found.harm) == ("b", "a", "b", Harm.STRANDS)


EVENTS = st.dictionaries(
    st.sampled_from("ab"), st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.just("x"))
)
TERMS = st.lists(st.sampled_from(["event.data.a", "event.data.b", "'x'", "'y'", "''"]), min_size=1)


@given(TERMS, EVENTS)
def test_texts_that_follow_each_other_resolve_as_one(terms, data):
    template = KeyTemplate.parse(" + ".join(terms))
    merged = [
        f"'{part}'" if isinstance(part, str) else "event.data." + ".".join(part)
        for part in meaning(template)
    ]
    event = {"data": data}
    assert KeyTemplate.parse(" + ".join(merged)).resolve(event) == template.resolve(event)
