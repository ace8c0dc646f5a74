"""Times of a job that defeat each other, and ids that are hard to name."""

from __future__ import annotations

import json

import pytest

from jobspec import check

FIXED = {"policy": "fixed", "delay": "1s"}


def codes(**fields):
    found = check(json.dumps({"jobs": [{"id": "a", "triggers": ["a"]} | fields]}))
    return [one.code for one in found]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"retries": 3, "timeouts": {"finish": "15s"}}, ["JS412"]),
        ({"retries": 3, "timeouts": {"finish": "16s"}}, []),
        ({"retries": 0, "timeouts": {"finish": "5s"}}, []),
        ({"timeouts": {"finish": "5s"}}, []),
        ({"retry": {"jitter": 0.5}, "timeouts": {"finish": "7s"}}, ["JS412"]),
        ({"retry": {"jitter": 0.5}, "timeouts": {"finish": "8s"}}, []),
        ({"retry": FIXED, "timeouts": {"finish": "5s"}}, []),
        ({"retry": FIXED | {"delay": "5s"}, "timeouts": {"finish": "5s"}}, ["JS412"]),
        ({"retry": {"on": [{"error": "x:Y"} | FIXED]}, "timeouts": {"finish": "5s"}}, []),
        (
            {"retry": {"on": [{"error": "x:Y", "policy": "never"}]}, "timeouts": {"finish": "5s"}},
            ["JS412"],
        ),
    ],
)
def test_a_finish_leaves_time_for_the_retries_that_are_asked_for(fields, expected):
    assert codes(**fields) == expected


@pytest.mark.parametrize(
    ("attempt", "expected"), [("61s", ["JS413"]), ("60s", []), ("59s", []), ("0s", ["JS305"])]
)
def test_an_attempt_is_not_longer_than_the_finish(attempt, expected):
    assert codes(timeouts={"attempt": attempt, "finish": "1m"}) == expected


@pytest.mark.parametrize("job_id", ["send email", "email ", "a\u00a0b"])
def test_a_job_id_has_no_white_space(job_id):
    assert codes(id=job_id) == ["JS414"]


@pytest.mark.parametrize("char", ["\0", "\t", "\n", "\x7f"])
@pytest.mark.parametrize(
    "fields",
    [
        lambda name: {"id": name},
        lambda name: {"name": name},
        lambda name: {"triggers": [name]},
        lambda name: {"triggers": [{"event": name}]},
        lambda name: {"cancelOn": [{"event": name, "match": "data.id"}]},
    ],
)
def test_no_name_holds_what_postgres_or_a_listing_can_not(fields, char):
    assert codes(**fields(f"email{char}send")) == ["JS320"]


def test_the_character_that_no_name_can_hold_is_pointed_at():
    (found,) = check(json.dumps({"jobs": [{"id": "a\0b", "triggers": ["a"]}]}))
    assert found.source.text[found.span.start : found.span.end] == "\\u0000"
