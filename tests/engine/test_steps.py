"""Steps: what is kept of them, and what a handler that is entered again gets back."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from pydantic import BaseModel, field_serializer

from enginekit import (
    dead_letters,
    job,
    jobs,
    run_of,
    run_until_idle,
    runs,
    until_async,
    working,
)
from jobspec import Backoff
from jobspec_engine import NonRetriable, RetryAfter, journal
from jobspec_engine.errors import ResultError, StepError, StepFailed
from jobspec_engine.step_results import MAX_RESULT_BYTES
from stepkit import LONG, SHORT, Work, run, send


class Container(BaseModel):
    id: str
    booted_at: datetime


@dataclass
class Point:
    x: int
    y: int


CONTAINER = Container(id="c1", booted_at=datetime(2026, 1, 1, tzinfo=UTC))


# What is kept


@pytest.mark.parametrize("bound", ["_MAX_RUNS", "_MAX_SIZE"])
async def test_a_worker_that_has_no_room_for_all_memos_reads_them_again(
    dsn, clock, connection, monkeypatch, bound
):
    monkeypatch.setattr(journal, bound, 1)
    work, parked = Work(), {("pending", 1)}

    async def handler(context):
        one = await context.step.run("one", work, context.run_id)
        await context.step.sleep("rest", LONG)
        return [one, await context.step.run("two", work, -context.run_id)]

    compiled = job(handler=handler)
    for _ in range(2):
        send(dsn, compiled)
    async with working(compiled, dsn):
        await until_async(lambda: {(one.state, one.passes) for one in runs(connection)} == parked)
        clock.advance(LONG)
        await until_async(lambda: {one.state for one in runs(connection)} == {"completed"})
    assert sorted(work.calls) == [-2, -1, 1, 2]
    assert [one.result for one in runs(connection)] == [[1, -1], [2, -2]]


async def test_a_finished_step_is_not_done_again_when_the_handler_is_entered_again(
    dsn, clock, connection
):
    work, seen = Work(), []

    async def handler(context):
        seen.append((context.attempt, context.pass_number, context.run_id, context.event.id))
        one = await context.step.run("one", work, 1)
        await context.step.sleep("rest", LONG)
        return [one, await context.step.run("two", work, 2)]

    await run(dsn, handler, clock, passes=2)
    run_id, event_id = run_of(connection).id, run_of(connection).event_id
    assert work.calls == [1, 2]
    assert seen == [(1, 1, run_id, event_id), (1, 2, run_id, event_id)]
    assert (run_of(connection).state, run_of(connection).result) == ("completed", [1, 2])


async def test_memos_are_kept_over_a_failed_attempt_which_begins_with_pass_one(
    dsn, clock, connection
):
    work, seen = Work(), []

    async def handler(context):
        seen.append((context.attempt, context.pass_number))
        await context.step.run("one", work, 1)
        if context.attempt == 1:
            raise ValueError("once")

    await run(dsn, handler, clock, passes=2)
    assert work.calls == [1]
    assert seen == [(1, 1), (2, 1)]
    assert run_of(connection).state == "completed"


async def test_a_sync_function_runs_in_a_thread_and_an_async_one_in_the_loop(dsn):
    threads = {}

    def blocking(name):
        threads[name] = threading.current_thread()

    async def waiting(name):
        threads[name] = threading.current_thread()

    async def handler(context):
        await context.step.run("sync", blocking, "sync")
        await context.step.run("async", waiting, "async")
        await context.step.run("both", lambda: waiting("both"))

    await run(dsn, handler)
    here = threading.current_thread()
    assert threads["sync"].name.startswith("jobspec handler")
    assert (threads["async"], threads["both"]) == (here, here)


async def test_a_result_comes_back_as_its_type_in_each_pass(dsn, clock):
    seen = []

    async def boot() -> Container:
        return CONTAINER

    async def handler(context):
        seen.append(await context.step.run("annotated", boot))
        seen.append(await context.step.run("stated", lambda: Point(1, 2), type=Point))
        seen.append(await context.step.run("plain", lambda: (1, {"a": None})))
        await context.step.sleep("rest", LONG)

    await run(dsn, handler, clock, passes=2)
    assert seen == 2 * [CONTAINER, Point(1, 2), [1, {"a": None}]]


class Unreadable(BaseModel):
    """What is told in words that it does not take itself."""

    number: int

    @field_serializer("number")
    def in_words(self, _: int) -> str:
        return "one"


def unresolved() -> Nowhere:  # noqa: F821  it is the point
    """A function whose annotation names nothing."""


@pytest.mark.parametrize(
    ("fn", "stated", "error", "message"),
    [
        (object, None, StepFailed, "the result of step `x` is of type object, which is not JSON"),
        (
            lambda: float("nan"),
            None,
            StepFailed,
            "the result of step `x` is nan, which is not JSON",
        ),
        (lambda: "1", int, StepFailed, "the result of step `x` is not of its type"),
        (
            lambda: "x" * MAX_RESULT_BYTES,
            None,
            StepFailed,
            "1,048,578 bytes as JSON, and 1,048,576",
        ),
        (
            lambda: Unreadable(number=1),
            Unreadable,
            StepFailed,
            "does not come back from JSON as its type",
        ),
        (partial(unresolved), None, StepError, "annotation of step `x` can't be resolved"),
        (unresolved, None, StepError, "the return annotation of step `x` can't be resolved"),
        (print, threading.Lock, StepError, "the type of step `x` has no form in JSON"),
    ],
)
async def test_a_result_that_can_not_be_kept_is_refused_where_the_handler_can_catch_it(
    dsn, connection, fn, stated, error, message
):
    async def handler(context):
        with pytest.raises(error, match=message):
            await context.step.run("x", fn, type=stated)
        return "caught"

    await run(dsn, handler)
    assert run_of(connection).result == "caught"


async def test_a_result_of_the_largest_size_is_kept(dsn, connection):
    async def handler(context):
        return len(await context.step.run("x", lambda: "x" * (MAX_RESULT_BYTES - 2)))

    await run(dsn, handler)
    assert run_of(connection).result == MAX_RESULT_BYTES - 2


async def test_the_result_of_an_invoked_run_comes_back_as_its_type(dsn, connection):
    async def parent(context):
        with pytest.raises(ResultError, match="kept of step `wrong` is not of its type"):
            await context.step.invoke("child", type=int, name="wrong")
        return repr(await context.step.invoke("child", type=Point))

    async def child(context):
        return {"x": 1, "y": 2}

    compiled = jobs(job={"handler": parent}, child={"event": "never", "handler": child})
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    assert runs(connection)[0].result == "Point(x=1, y=2)"


async def test_a_result_whose_type_has_changed_ends_the_run_and_says_so(dsn, clock, connection):
    async def handler(context):
        kept = Container if context.pass_number == 1 else Point
        await context.step.run("boot", lambda: CONTAINER, type=kept)
        await context.step.sleep("rest", LONG)

    await run(dsn, handler, clock, passes=2)
    (dead,) = dead_letters(connection)
    assert dead.reason == "not-retriable"
    assert "what is kept of step `boot` is not of its type any more" in dead.message


# Failures


async def test_a_failed_step_is_retried_by_its_own_policy(dsn, clock, connection):
    work, seen = Work(OSError("a"), OSError("b"), None), []

    async def handler(context):
        seen.append(context.attempt)
        return await context.step.run(
            "x", work, 1, retries=2, backoff=Backoff("fixed", delay=timedelta(minutes=1))
        )

    compiled = job(handler=handler, retries=0)
    send(dsn, compiled)
    for calls in (1, 2):
        await run_until_idle(compiled, dsn)
        assert len(work.calls) == calls
        assert run_of(connection).run_at == clock.now() + timedelta(minutes=1)
        clock.advance(60)
    await run_until_idle(compiled, dsn)
    assert (len(work.calls), run_of(connection).result, seen) == (3, 1, [1, 1, 1])


async def test_short_waits_between_tries_are_waited_out_in_the_process(dsn, connection):
    work = Work(OSError(), OSError(), None)

    async def handler(context):
        await context.step.run("x", work, retries=2, backoff=Backoff("fixed", delay=SHORT))
        return context.pass_number

    await run(dsn, handler)
    assert (len(work.calls), run_of(connection).result) == (3, 1)


@pytest.mark.parametrize("delay", [SHORT, timedelta(minutes=1)], ids=["here", "over passes"])
async def test_a_step_that_fails_each_time_is_tried_as_often_as_it_may(
    dsn, clock, connection, delay
):
    work = Work(*[OSError("no")] * 9)

    async def handler(context):
        await context.step.run("x", work, retries=2, backoff=Backoff("fixed", delay=delay))

    compiled = job(handler=handler, retries=0)
    send(dsn, compiled)
    for _ in range(4):
        await run_until_idle(compiled, dsn)
        clock.advance(60)
    assert (len(work.calls), run_of(connection).state) == (3, "failed")


async def test_a_step_that_failed_for_good_raises_the_same_in_each_pass(dsn, clock, connection):
    work, seen = Work(ValueError("no\0t \ud800 it")), []

    async def handler(context):
        try:
            await context.step.run("x", work)
        except StepFailed as error:
            seen.append((str(error), error.step, error.error_type, error.message))
        await context.step.sleep("rest", LONG)
        return "went on"

    await run(dsn, handler, clock, passes=2)
    assert len(work.calls) == 1
    assert seen[0][1:3] == ("`x`", "ValueError")
    assert seen[0] == seen[1]
    assert run_of(connection).result == "went on"


async def test_what_a_step_raised_is_the_cause_of_its_failure(dsn, connection):
    error = OSError("no")

    async def handler(context):
        with pytest.raises(StepFailed) as failed:
            await context.step.run("x", Work(error))
        return failed.value.__cause__ is error

    await run(dsn, handler)
    assert run_of(connection).result


async def test_a_step_whose_failure_leaves_the_handler_is_tried_again_by_the_next_attempt(
    dsn, clock, connection
):
    work = Work(ValueError("once"), None)

    async def handler(context):
        return await context.step.run("x", work, 1)

    await run(dsn, handler, clock, passes=2)
    assert (work.calls, run_of(connection).result) == ([1, 1], 1)


async def test_a_failure_that_other_steps_followed_from_stays(dsn, clock, connection):
    """To try it again could take another path than the one that is recorded."""
    work, undone = Work(ValueError("once"), None), Work()

    async def handler(context):
        try:
            await context.step.run("x", work)
        except StepFailed:
            await context.step.run("undo", undone)
            if context.attempt == 1:
                raise
        return context.attempt

    await run(dsn, handler, clock, passes=2)
    assert (len(work.calls), len(undone.calls), run_of(connection).result) == (1, 1, 2)


async def test_a_step_says_itself_when_it_is_to_be_tried_again(dsn, clock, connection):
    at = clock.now() + timedelta(hours=1)
    work = Work(RetryAfter(timedelta(minutes=5)), RetryAfter(at), None)

    async def handler(context):
        await context.step.run("x", work, retries=5)

    compiled = job(handler=handler)
    send(dsn, compiled)
    due = []
    for _ in range(2):
        await run_until_idle(compiled, dsn)
        due.append(run_of(connection).run_at)
        clock.set(due[-1])
    await run_until_idle(compiled, dsn)
    assert due == [clock.START + timedelta(minutes=5), at]
    assert run_of(connection).state == "completed"


async def test_a_step_that_is_not_to_be_retried_ends_its_run(dsn, connection):
    work = Work(NonRetriable("no use"))

    async def handler(context):
        await context.step.run("x", work, retries=5)

    await run(dsn, handler)
    (dead,) = dead_letters(connection)
    assert (dead.reason, len(work.calls)) == ("not-retriable", 1)
    assert "step `x` failed: NonRetriable: no use" in dead.message
