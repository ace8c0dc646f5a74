"""How long a run may wait for its start, last until its finish, and an attempt take."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from enginekit import PATIENCE, Gate, dead_letters, job, run_of, run_until_idle, runs, send

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
MOMENT = timedelta(milliseconds=1)
SHORT = "50ms"
BEGINNING = "Traceback (most recent call last):"


class Counts:
    """A handler that counts its entries, and fails at the first `failures` of them."""

    def __init__(self, failures=0):
        self.entries = 0
        self.failures = failures

    async def __call__(self, _):
        self.entries += 1
        if self.entries <= self.failures:
            raise ValueError("no")


def reasons(connection):
    return [(dead.reason, dead.message) for dead in dead_letters(connection)]


# --- start


async def test_a_run_that_waited_too_long_for_its_start_is_cancelled_and_a_dead_letter(
    dsn, clock, connection
):
    handler = Counts()
    compiled = job(handler=handler, timeouts={"start": "1m"})
    send(dsn, compiled)
    clock.advance(MINUTE + MOMENT)
    await run_until_idle(compiled, dsn)
    run = run_of(connection)
    assert (run.state, run.finished_at, handler.entries) == ("cancelled", clock.now(), 0)
    assert reasons(connection) == [
        ("start-timeout", "it had waited 60.001 s for its start, longer than 60 s")
    ]
    assert run.errors[0]["error"] == dead_letters(connection)[0].message


async def test_a_run_that_starts_just_in_time_runs(dsn, clock, connection):
    compiled = job(handler=Counts(), timeouts={"start": "1m"})
    send(dsn, compiled)
    clock.advance(MINUTE)
    await run_until_idle(compiled, dsn)
    assert run_of(connection).state == "completed"


async def test_the_wait_for_the_start_counts_from_when_the_run_is_due(dsn, clock, connection):
    compiled = job(handler=Counts(), timeouts={"start": "1m"}, debounce={"period": "1h"})
    send(dsn, compiled)
    clock.advance(HOUR + MINUTE)
    await run_until_idle(compiled, dsn)
    assert run_of(connection).state == "completed"


async def test_a_run_that_has_started_may_wait_for_its_retry(dsn, clock, connection):
    retry = {"policy": "fixed", "delay": "1s"}
    compiled = job(handler=Counts(failures=1), timeouts={"start": "1m"}, retry=retry)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    clock.advance(HOUR)
    await run_until_idle(compiled, dsn)
    assert (run_of(connection).state, run_of(connection).attempt) == ("completed", 2)


# --- finish


async def test_a_run_that_is_retried_for_too_long_ends_when_its_time_is_up(dsn, clock, connection):
    handler = Counts(failures=9)
    retry = {"policy": "fixed", "delay": "10m"}
    compiled = job(handler=handler, timeouts={"finish": "25m"}, retry=retry, retries=9)
    send(dsn, compiled)
    started = clock.now()
    for _ in range(3):
        await run_until_idle(compiled, dsn)
        clock.set(run_of(connection).run_at)
    assert (run_of(connection).state, clock.now()) == ("pending", started + 25 * MINUTE)
    await run_until_idle(compiled, dsn)
    run = run_of(connection)
    assert (run.state, run.finished_at) == ("cancelled", started + 25 * MINUTE)
    assert handler.entries == 3
    assert reasons(connection) == [("finish-timeout", "it had not finished after 1500 s")]


async def test_a_run_that_sleeps_when_its_time_is_up_ends_then(dsn, clock, connection):
    async def handler(context):
        await context.step.sleep("rest", HOUR)

    compiled = job(handler=handler, timeouts={"finish": "25m"})
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    assert run_of(connection).run_at == clock.now() + 25 * MINUTE
    clock.advance(25 * MINUTE)
    await run_until_idle(compiled, dsn)
    assert reasons(connection) == [("finish-timeout", "it had not finished after 1500 s")]


async def test_the_time_to_finish_does_not_count_the_wait_for_the_start(dsn, clock, connection):
    compiled = job(handler=Counts(), timeouts={"finish": "1m"})
    send(dsn, compiled)
    clock.advance(HOUR)
    await run_until_idle(compiled, dsn)
    assert run_of(connection).state == "completed"


async def test_a_handler_that_waits_when_the_time_of_its_run_is_up_is_cancelled(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate, timeouts={"finish": SHORT})
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    assert gate.left == ["cancelled"]
    assert (run_of(connection).state, run_of(connection).attempt) == ("cancelled", 1)
    assert reasons(connection) == [("finish-timeout", "it had not finished after 0.05 s")]


async def test_a_run_that_was_reclaimed_has_the_rest_of_its_time(dsn, clock, connection):
    compiled = job(handler=Counts(), timeouts={"finish": "1m"})
    send(dsn, compiled)
    connection.execute(
        "update jobspec.job_queue set state = 'running', attempt = 1, first_claimed_at = %(now)s,"
        " lease_token = gen_random_uuid(), lease_until = %(now)s",
        {"now": clock.now()},
    )
    clock.advance(MINUTE)
    await run_until_idle(compiled, dsn)
    assert [reason for reason, _ in reasons(connection)] == ["finish-timeout"]


# --- attempt


async def test_an_attempt_that_takes_too_long_is_cancelled_fails_and_is_retried(
    dsn, clock, connection
):
    gate = Gate()
    retry = {
        "policy": "fixed",
        "delay": "1h",
        "on": [{"error": TimeoutError, "policy": "fixed", "delay": "1m"}],
    }
    compiled = job(handler=gate, timeouts={"attempt": SHORT}, retry=retry)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    run = run_of(connection)
    assert gate.left == ["cancelled"]
    assert (run.state, run.attempt, run.run_at) == ("pending", 1, clock.now() + MINUTE)
    assert run.errors[0]["error"] == "TimeoutError: the attempt took longer than 0.05 s"
    cause = run.errors[0]["traceback"].partition("\n\n")[0].splitlines()
    assert "await self.open.wait()" in run.errors[0]["traceback"]
    assert (cause[0], "enginekit.py" in cause[1]) == (BEGINNING, True)
    clock.advance(MINUTE)
    gate.open.set()
    await run_until_idle(compiled, dsn)
    assert (run_of(connection).state, run_of(connection).result) == ("completed", 2)


async def test_a_sync_handler_can_not_be_stopped_but_what_it_returns_is_dropped(dsn, connection):
    release, ended = threading.Event(), threading.Event()

    def handler(context):
        release.wait(PATIENCE)
        ended.set()
        return "too late"

    compiled = job(handler=handler, timeouts={"attempt": SHORT})
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    release.set()
    assert ended.wait(PATIENCE)
    run = run_of(connection)
    assert (run.state, run.attempt, run.result) == ("pending", 1, None)


async def test_a_timeout_of_the_handler_s_own_is_an_error_like_any_other(dsn, connection):
    async def handler(context):
        raise TimeoutError("the bank did not answer")

    compiled = job(handler=handler, timeouts={"attempt": "1m", "finish": "1m"}, retries=0)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    assert reasons(connection) == [("attempts-used", "TimeoutError: the bank did not answer")]


async def test_an_error_while_it_is_cancelled_does_not_hide_that_time_was_up(dsn, connection):
    async def handler(context):
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("no clean end")

    compiled = job(handler=handler, timeouts={"attempt": SHORT}, retries=0)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    (entry,) = run_of(connection).errors
    assert entry["error"].startswith("TimeoutError: the attempt took longer")
    assert "RuntimeError: no clean end" in entry["traceback"]


async def test_a_handler_that_finishes_all_the_same_has_finished(dsn, connection):
    async def handler(context):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done after all"

    compiled = job(handler=handler, timeouts={"attempt": SHORT})
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    assert (run_of(connection).state, run_of(connection).result) == ("completed", "done after all")


@pytest.mark.parametrize(
    ("timeouts", "reason"),
    [
        ({"attempt": SHORT, "finish": "1h"}, "attempts-used"),
        ({"attempt": "1h", "finish": SHORT}, "finish-timeout"),
        ({"attempt": SHORT, "finish": SHORT}, "finish-timeout"),
    ],
)
async def test_the_time_that_is_up_first_decides(dsn, connection, timeouts, reason):
    compiled = job(handler=Gate(), timeouts=timeouts, retries=0)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    assert [one for one, _ in reasons(connection)] == [reason]


async def test_timeouts_of_one_job_leave_others_alone(dsn, connection):
    compiled = job(handler=Counts())
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    assert [run.state for run in runs(connection)] == ["completed"]
