"""How a spec says when a failed run is tried again, and how long each wait is."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

import jobspec
from jobspec import Registry
from jobspec.backoff import Backoff, ErrorRetry, Retry

MINUTE = timedelta(minutes=1)


def retry(**written):
    """Compile a job whose option `retry` is this."""
    job = {"id": "a", "triggers": ["a"], "retry": written}
    return jobspec.compile(json.dumps({"jobs": [job]}))["a"].retry


def waits(backoff, attempts):
    return [backoff.after(attempt).total_seconds() for attempt in attempts]


def test_without_the_option_the_table_of_the_reference_holds():
    job = jobspec.compile('{"jobs": [{"id": "a", "triggers": ["a"]}]}')["a"]
    assert job.retry == Retry(Backoff("reference"))
    assert waits(job.retry.backoff, range(1, 13)) == [
        *(15, 30, 60, 120, 300, 600, 1200, 2400, 3600, 7200, 7200, 7200)
    ]


def test_a_fixed_wait_is_the_same_each_time():
    backoff = retry(policy="fixed", delay="30s").backoff
    assert waits(backoff, (1, 2, 20)) == [30, 30, 30]


def test_an_exponential_wait_grows_up_to_its_maximum():
    backoff = retry(policy="exponential", delay="5s", max="1h", factor=3).backoff
    assert waits(backoff, range(1, 9)) == [5, 15, 45, 135, 405, 1215, 3600, 3600]


def test_an_exponential_wait_doubles_up_to_a_day_unless_it_says_otherwise():
    backoff = retry(policy="exponential", delay="1h").backoff
    assert waits(backoff, range(1, 8)) == [3600 * one for one in (1, 2, 4, 8, 16, 24, 24)]


def test_a_first_wait_of_more_than_a_day_needs_no_maximum():
    assert waits(retry(policy="exponential", delay="2d").backoff, (1, 2)) == [172800, 172800]


@pytest.mark.parametrize("factor", [1, 1.001, 100])
def test_an_exponential_wait_takes_any_attempt(factor):
    backoff = retry(policy="exponential", delay="1ms", max="7d", factor=factor).backoff
    assert timedelta(0) < backoff.after(1_000_000) <= timedelta(days=7)


def test_errors_are_retried_by_their_class():
    assert retry(
        policy="fixed",
        delay="1m",
        jitter=0.5,
        on=[
            {"error": "myapp.errors:Invalid", "policy": "never"},
            {"error": "myapp.errors:Busy", "policy": "exponential", "delay": "1s"},
        ],
    ) == Retry(
        Backoff("fixed", MINUTE, jitter=0.5),
        (
            ErrorRetry("myapp.errors:Invalid", Backoff("never")),
            ErrorRetry("myapp.errors:Busy", Backoff("exponential", timedelta(seconds=1))),
        ),
    )


def test_an_error_that_is_never_retried_waits_for_nothing():
    assert Backoff("never").after(1) is None


class InvalidError(Exception):
    """An error of an application."""


def test_a_decorator_takes_the_same_with_classes_and_times():
    registry = Registry()
    registry.job(
        id="a",
        triggers=["a"],
        retry={
            "policy": "fixed",
            "delay": MINUTE,
            "on": [{"error": InvalidError, "policy": "never"}],
        },
    )(print)
    assert jobspec.compile(registry)["a"].retry == Retry(
        Backoff("fixed", MINUTE),
        (ErrorRetry(f"{__name__}:InvalidError", Backoff("never")),),
    )


def test_a_class_that_nothing_can_import_is_refused():
    class LocalError(Exception):
        """An error that only this function knows."""

    with pytest.raises(jobspec.CompileError) as refused:
        Registry().job(
            id="a", triggers=["a"], retry={"on": [{"error": LocalError, "policy": "never"}]}
        )
    assert [found.code for found in refused.value.diagnostics] == ["JS319"]
