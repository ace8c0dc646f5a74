"""When a failed run is tried again: by its policy, by the class of its error, by its own word."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone

import pytest

from enginekit import dead_letters, job, run_of, run_until_idle, send
from jobspec_engine import Client, NonRetriable, RetryAfter
from jobspec_engine.errors import HandlerError
from jobspec_engine.handlers import load_handlers

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


class BusyError(Exception):
    """An error that passes."""


class VeryBusyError(BusyError):
    """One below it."""


class InvalidError(Exception):
    """An error that stays."""


class Raises:
    """A handler that raises these errors, one at each entry."""

    def __init__(self, *errors):
        self.errors = list(errors)

    async def __call__(self, _):
        raise self.errors.pop(0)


async def run_once(dsn, *errors, **options):
    """Let a job fail its first attempt, and return the job."""
    compiled = job(handler=Raises(*errors), **options)
    with Client(compiled, dsn) as client:
        client.send("event", {})
    await run_until_idle(compiled, dsn)
    return compiled


def waits(connection, clock):
    return run_of(connection).run_at - clock.now()


async def all_waits(dsn, clock, connection, **options):
    """Let a job fail all its attempts, and return how long it waited between them."""
    compiled = await run_once(dsn, *[ValueError()] * 21, **options)
    found = []
    while run_of(connection).state == "pending":
        found.append(waits(connection, clock).total_seconds())
        clock.set(run_of(connection).run_at)
        await run_until_idle(compiled, dsn)
    return found


async def test_a_fixed_policy_waits_the_same_each_time(dsn, clock, connection):
    retry = {"policy": "fixed", "delay": "30s"}
    assert await all_waits(dsn, clock, connection, retry=retry) == [30] * 4


async def test_an_exponential_policy_waits_longer_each_time_up_to_its_maximum(
    dsn, clock, connection
):
    retry = {"policy": "exponential", "delay": "5s", "factor": 3, "max": "1m"}
    found = await all_waits(dsn, clock, connection, retry=retry, retries=5)
    assert found == [5, 15, 45, 60, 60]


async def test_jitter_makes_waits_longer_and_shorter_by_its_part(dsn, clock, connection):
    random.seed(7)
    retry = {"policy": "fixed", "delay": "100s", "jitter": 0.2}
    found = await all_waits(dsn, clock, connection, retry=retry, retries=20)
    assert all(80 <= wait <= 120 for wait in found)
    assert len(set(found)) == 20
    assert min(found) < 95 < 105 < max(found)


async def test_jitter_is_decided_once_and_kept_as_the_time_of_the_retry(dsn, clock, connection):
    compiled = await run_once(
        dsn, ValueError(), retry={"policy": "fixed", "delay": "100s", "jitter": 1}
    )
    decided = run_of(connection).run_at
    await run_until_idle(compiled, dsn)
    await run_until_idle(compiled, dsn)
    assert run_of(connection).run_at == decided
    assert run_of(connection).attempt == 1


ON = [
    {"error": VeryBusyError, "policy": "fixed", "delay": "1h"},
    {"error": BusyError, "policy": "fixed", "delay": "1m"},
    {"error": InvalidError, "policy": "never"},
]


@pytest.mark.parametrize(
    ("error", "seconds"), [(VeryBusyError(), 3600), (BusyError(), 60), (ValueError(), 5)]
)
async def test_the_first_class_that_an_error_belongs_to_decides(
    dsn, clock, connection, error, seconds
):
    await run_once(dsn, error, retry={"policy": "fixed", "delay": "5s", "on": ON})
    assert waits(connection, clock).total_seconds() == seconds


async def test_an_error_that_is_never_retried_ends_its_run_at_once(dsn, connection):
    await run_once(dsn, InvalidError("no such order"), retry={"on": ON})
    (dead,) = dead_letters(connection)
    assert (run_of(connection).state, run_of(connection).attempt) == ("failed", 1)
    assert dead.reason == "not-retriable"
    assert dead.message.endswith("InvalidError: no such order")


async def test_a_handler_ends_its_run_at_once_by_non_retriable(dsn, connection):
    await run_once(dsn, NonRetriable("no such order"))
    (dead,) = dead_letters(connection)
    assert (run_of(connection).state, run_of(connection).attempt) == ("failed", 1)
    assert (dead.reason, dead.message) == (
        "not-retriable",
        "jobspec_engine.errors.NonRetriable: no such order",
    )


async def test_a_handler_says_by_retry_after_how_long_to_wait(dsn, clock, connection):
    await run_once(dsn, RetryAfter(17 * SECOND), retry={"policy": "fixed", "delay": "5s"})
    assert waits(connection, clock) == 17 * SECOND
    assert (run_of(connection).state, run_of(connection).attempt) == ("pending", 1)


async def test_a_handler_says_by_retry_after_when_to_try_again(dsn, clock, connection):
    at = clock.now() + DAY
    await run_once(dsn, RetryAfter(at, "the quota is used up"))
    run = run_of(connection)
    assert run.run_at == at
    assert run.errors[0]["error"].endswith("RetryAfter: the quota is used up")


async def test_retry_after_uses_up_the_attempts_like_any_failure(dsn, connection):
    await run_once(dsn, RetryAfter(SECOND), retries=0)
    assert [dead.reason for dead in dead_letters(connection)] == ["attempts-used"]


@pytest.mark.parametrize(
    "after",
    [
        -SECOND,
        367 * DAY,
        30,
        None,
        datetime(2026, 1, 1),  # noqa: DTZ001
        datetime.min.replace(tzinfo=timezone(HOUR)),
        datetime.max.replace(tzinfo=timezone(-HOUR)),
    ],
)
def test_a_time_that_can_not_be_kept_is_refused_where_it_is_raised(after):
    with pytest.raises(ValueError, match="RetryAfter needs"):
        RetryAfter(after)


@pytest.mark.parametrize(
    ("after", "wait"),
    [
        (366 * DAY, 366 * DAY),
        (datetime(9999, 12, 31, tzinfo=timezone(23 * HOUR)), 366 * DAY),
        (datetime(1, 1, 2, tzinfo=timezone(23 * HOUR)), timedelta(0)),
    ],
)
async def test_a_time_that_is_too_far_off_is_cut(dsn, clock, connection, after, wait):
    await run_once(dsn, *[RetryAfter(after)] * 9, retries=1)
    run = run_of(connection)
    assert run.run_at == clock.now() + wait
    assert run.state == ("pending" if wait else "failed")


class NoTime(RetryAfter):
    """A class below that says no time, or none that is one."""

    def __init__(self, **said):
        vars(self).update(said)


@pytest.mark.parametrize("said", [{}, {"after": 30}, {"after": -SECOND}])
async def test_a_retry_after_that_says_no_time_goes_by_the_policy(dsn, clock, connection, said):
    await run_once(dsn, NoTime(**said), retry={"policy": "fixed", "delay": "5s"})
    assert waits(connection, clock) == 5 * SECOND


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        ("nowhere.to:Find", "error `nowhere.to:Find` needs the module `nowhere`"),
        ("json:Nothing", "`json` has no `Nothing`, which the job names as its error"),
        ("json:dumps", "error `json:dumps` of its `retry` is not a class of errors"),
        ("json:JSONEncoder", "error `json:JSONEncoder` of its `retry` is not a class of errors"),
    ],
)
def test_a_class_of_errors_that_is_none_is_found_before_anything_runs(error, problem):
    compiled = job(retry={"on": [{"error": error, "policy": "never"}]})
    with pytest.raises(HandlerError) as refused:
        load_handlers(compiled)
    assert problem in str(refused.value)


async def test_a_failed_attempt_is_kept_with_its_worker_and_its_times(dsn, clock, connection):
    started = clock.now()

    async def handler(context):
        clock.advance(5)
        raise ValueError("no")

    compiled = job(handler=handler)
    with Client(compiled, dsn) as client:
        client.send("event", {})
    await run_until_idle(compiled, dsn, name="worker-7")
    (entry,) = run_of(connection).errors
    assert (entry["attempt"], entry["worker"]) == (1, "worker-7")
    assert datetime.fromisoformat(entry["started_at"]) == started
    assert datetime.fromisoformat(entry["ended_at"]) == started + 5 * SECOND
    assert entry["error"] == "ValueError: no"
    assert 'raise ValueError("no")' in entry["traceback"]


async def fails_at_once(context):
    raise ValueError("no")


def fails_in_a_thread(context):
    raise ValueError("no")


def gives_what_fails(context):
    return fails_at_once(context)


@pytest.mark.parametrize("handler", [fails_at_once, fails_in_a_thread, gives_what_fails])
async def test_a_traceback_begins_with_the_handler(dsn, connection, handler):
    compiled = job(handler=handler)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    (entry,) = run_of(connection).errors
    heading, first, *_ = entry["traceback"].splitlines()
    assert heading == "Traceback (most recent call last):"
    assert first.startswith(f'  File "{__file__}", line ')


@pytest.mark.parametrize("returned", [{1}, float("nan")])
async def test_a_traceback_of_what_the_engine_refuses_is_whole(dsn, connection, returned):
    compiled = job(handler=lambda _: returned)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    (entry,) = run_of(connection).errors
    told = entry["traceback"]
    assert told.index("attempt.py") < told.index("payload.py")
