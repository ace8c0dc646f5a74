"""Steps: what is kept of them, and what a handler that is entered again gets back."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel

from enginekit import (
    count,
    dead_letters,
    job,
    run_of,
    run_until_idle,
    until_async,
    working,
)
from jobspec import Backoff
from jobspec_engine import Client, NonRetriable, RetryAfter
from jobspec_engine.errors import StepError, StepFailed
from jobspec_engine.step_results import MAX_RESULT_BYTES

LONG = timedelta(minutes=5)
SHORT = timedelta(milliseconds=10)


class Container(BaseModel):
    id: str
    booted_at: datetime


@dataclass
class Point:
    x: int
    y: int


CONTAINER = Container(id="c1", booted_at=datetime(2026, 1, 1, tzinfo=UTC))


def send(dsn, compiled, data=None):
    with Client(compiled, dsn) as client:
        return client.send("event", data or {}).jobs[0].run_id


async def run(dsn, handler, clock=None, *, passes=1, **options):
    """Send an event and run its handler for some passes, five minutes apart."""
    compiled = job(handler=handler, **options)
    send(dsn, compiled)
    for number in range(passes):
        if number:
            clock.advance(LONG)
        await run_until_idle(compiled, dsn)


def memos(connection):
    return connection.execute(
        "select task, name, number, kind, state from jobspec.job_step order by revision"
    ).fetchall()


class Work:
    """A function for steps that notes what it was called with."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = []

    async def __call__(self, value=None):
        self.calls.append(value)
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
        return value


# What is kept


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
    assert threads["sync"] is not here
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


# Names


async def test_a_name_may_come_up_again_in_a_loop(dsn, clock, connection):
    work = Work()

    async def handler(context):
        results = [await context.step.run("poll", work, number) for number in range(3)]
        await context.step.sleep("rest", LONG)
        return results

    await run(dsn, handler, clock, passes=2)
    assert (work.calls, run_of(connection).result) == ([0, 1, 2], [0, 1, 2])
    assert [memo[1:3] for memo in memos(connection)[:3]] == [("poll", n) for n in (1, 2, 3)]


async def test_the_order_in_which_concurrent_steps_are_done_does_not_matter(dsn, clock, connection):
    calls, done = [], []

    async def handler(context):
        gates = [asyncio.Event() for _ in range(3)]
        gates[2].set()

        async def work(number):
            calls.append(number)
            await gates[number].wait()
            done.append(number)
            gates[number - 1].set()
            return number

        results = await asyncio.gather(*(context.step.run("x", work, n) for n in range(3)))
        await context.step.sleep("rest", LONG)
        return results

    await run(dsn, handler, clock, passes=2)
    assert (calls, done, run_of(connection).result) == ([0, 1, 2], [2, 1, 0], [0, 1, 2])


async def test_concurrent_tasks_with_several_steps_each_get_their_own_back(dsn, clock, connection):
    """In the first pass the last task comes first to its second step, in the second the first."""
    calls = []

    async def handler(context):
        gates = [asyncio.Event() for _ in range(3)]
        gates[2].set()

        async def first(number):
            await gates[number].wait()
            return number

        async def second(number):
            calls.append(number)
            gates[number - 1].set()
            return number * 10

        async def both(number):
            return await context.step.run(
                "second", second, await context.step.run("first", first, number)
            )

        results = await asyncio.gather(*(both(number) for number in range(3)))
        await context.step.sleep("rest", LONG)
        return results

    await run(dsn, handler, clock, passes=2)
    assert (calls, run_of(connection).result) == ([2, 1, 0], [0, 10, 20])


async def test_tasks_of_tasks_are_told_apart_by_their_parents(dsn, clock, connection):
    work = Work()

    async def handler(context):
        async def leaf(branch, number):
            return await context.step.run("leaf", work, [branch, number])

        async def branch(number):
            await context.step.run("branch", work, number)
            return await asyncio.gather(leaf(number, 0), leaf(number, 1))

        results = await asyncio.gather(branch(0), branch(1))
        await context.step.sleep("rest", LONG)
        return results

    await run(dsn, handler, clock, passes=2)
    assert run_of(connection).result == [[[0, 0], [0, 1]], [[1, 0], [1, 1]]]
    assert len(work.calls) == 6


async def test_tasks_whose_order_may_differ_need_names_of_their_own(dsn, clock, connection):
    work, refused = Work(), []

    async def handler(context):
        first = asyncio.Event()

        async def slow(number, name):
            if number:
                await first.wait()
            await context.step.run(name, work, number)
            first.set()

        await asyncio.gather(slow(0, "own:0"), slow(1, "own:1"))
        try:
            first.clear()
            await asyncio.gather(slow(0, "same"), slow(1, "same"))
        except StepError as error:
            refused.append(str(error))

    await run(dsn, handler)
    assert work.calls == [0, 1, 0]
    assert 'give each task\'s steps names of their own, such as f"same:{key}"' in refused[0]


async def test_tasks_of_later_rounds_are_told_from_earlier_ones_by_the_steps_between(
    dsn, connection
):
    work = Work()

    async def handler(context):
        async def item(value):
            await context.step.run("item", work, value)

        for page in range(2):
            await context.step.run("page", work, page)
            await asyncio.gather(item(10 + page), item(20 + page))

    await run(dsn, handler)
    assert work.calls == [0, 10, 20, 1, 11, 21]


@pytest.mark.parametrize("name", ["", "\0", "x" * 256])
async def test_a_name_that_can_not_be_kept_is_refused(dsn, connection, name):
    async def handler(context):
        with pytest.raises(StepError, match="a step's name must have 1 to 255 bytes and no U"):
            await context.step.run(name, print)

    await run(dsn, handler)
    assert run_of(connection).state == "completed"


async def test_a_step_inside_a_step_is_refused(dsn, connection):
    async def handler(context):
        async def outer():
            await context.step.run("inner", print)

        with pytest.raises(StepFailed, match="step `inner` is called inside step `outer`"):
            await context.step.run("outer", outer)

    await run(dsn, handler)
    assert run_of(connection).state == "completed"


async def test_a_sync_handler_is_told_that_steps_are_not_for_it(dsn, connection):
    def handler(context):
        with pytest.raises(StepError, match="steps are for `async def` handlers"):
            context.step.run("x", print)

    await run(dsn, handler)
    assert run_of(connection).state == "completed"


# Sleep


async def test_a_short_sleep_is_waited_out_in_the_process_its_end_in_the_database(dsn, connection):
    seen = []

    async def handler(context):
        await context.step.sleep("rest", SHORT)
        seen.append(
            connection.execute("select wake_at - recorded_at from jobspec.job_step").fetchone()
        )
        return context.pass_number

    await run(dsn, handler)
    assert run_of(connection).result == 1
    assert seen == [(SHORT,)]


async def test_a_long_sleep_gives_the_slot_back_and_uses_no_attempt(dsn, clock, connection):
    async def handler(context):
        await context.step.sleep("rest", LONG)
        return context.pass_number

    compiled = job(handler=handler, retries=0)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    asleep = run_of(connection)
    assert (asleep.state, asleep.attempt, asleep.lease_token) == ("pending", 0, None)
    assert asleep.run_at == clock.START + LONG
    clock.advance(LONG - timedelta(seconds=1))
    await run_until_idle(compiled, dsn)
    assert run_of(connection) == asleep
    clock.advance(1)
    await run_until_idle(compiled, dsn)
    awake = run_of(connection)
    assert (awake.state, awake.attempt, awake.refunds, awake.result) == ("completed", 1, 0, 2)


async def test_a_sleep_until_a_time_ends_then_and_one_in_the_past_at_once(dsn, clock, connection):
    at = clock.now() + timedelta(days=3)

    async def handler(context):
        await context.step.sleep_until("past", clock.START - LONG)
        with pytest.raises(StepError, match="give it a time zone"):
            await context.step.sleep_until("nowhere", datetime(2026, 1, 1))  # noqa: DTZ001
        await context.step.sleep_until("then", at)

    compiled = job(handler=handler)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    assert run_of(connection).run_at == at
    clock.set(at)
    await run_until_idle(compiled, dsn)
    assert run_of(connection).state == "completed"


async def test_a_run_wakes_for_the_first_of_several_sleeps(dsn, clock, connection):
    passes = []

    async def handler(context):
        passes.append(context.pass_number)
        await asyncio.gather(
            *(context.step.sleep(f"{n}", n * LONG) for n in (2, 1, 3)),
        )

    compiled = job(handler=handler)
    send(dsn, compiled)
    for _ in range(3):
        await run_until_idle(compiled, dsn)
        assert run_of(connection).run_at == clock.now() + LONG
        clock.advance(LONG)
    await run_until_idle(compiled, dsn)
    assert (passes, run_of(connection).state) == ([1, 2, 3, 4], "completed")


async def test_a_slot_is_not_given_back_while_another_step_is_at_work(dsn, clock, connection):
    state = []

    async def work():
        for _ in range(100):
            await asyncio.sleep(0)
        state.append(run_of(connection).state)

    async def handler(context):
        await asyncio.gather(context.step.sleep("rest", LONG), context.step.run("work", work))

    await run(dsn, handler)
    assert state == ["running"]
    assert run_of(connection).state == "pending"


async def test_a_handler_may_go_on_with_the_first_of_several_steps(dsn, connection):
    work = Work()

    async def handler(context):
        tasks = [
            asyncio.create_task(context.step.sleep("timer", LONG)),
            asyncio.create_task(context.step.run("quick", work, 1)),
        ]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        tasks[0].cancel()
        return await context.step.run("then", work, 2)

    await run(dsn, handler)
    assert (run_of(connection).state, work.calls) == ("completed", [1, 2])


async def test_a_sleep_that_a_later_pass_does_not_come_to_does_not_matter(dsn, clock, connection):
    """A loop that polls with a plain await is over sooner when its handler is entered again."""
    work, ready = Work(), []

    async def handler(context):
        while not ready:
            await context.step.sleep("pause", LONG)
        return await context.step.run("work", work, 1)

    compiled = job(handler=handler)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    ready.append(True)
    clock.advance(LONG)
    await run_until_idle(compiled, dsn)
    assert run_of(connection).result == 1


async def test_a_worker_that_stops_at_once_gives_a_sleeping_run_back(dsn, connection):
    async def handler(context):
        await context.step.sleep("rest", timedelta(seconds=9))

    compiled = job(handler=handler)
    async with working(compiled, dsn) as at_work:
        send(dsn, compiled)
        await until_async(lambda: count(connection, "job_step") == 1, "the sleep")
        at_work.stop(now=True)
        await until_async(lambda: run_of(connection).state == "pending", "the run")
    assert run_of(connection).attempt == 0


# Control flow


async def test_what_gives_the_slot_back_passes_an_except_exception(dsn, clock, connection):
    cleaned = []

    async def handler(context):
        try:
            await context.step.sleep("rest", LONG)
        except Exception:  # noqa: BLE001  it is the point
            return "swallowed"
        finally:
            cleaned.append(context.pass_number)
        return "slept"

    await run(dsn, handler, clock, passes=2)
    assert (run_of(connection).result, cleaned) == ("slept", [1, 2])


async def test_it_passes_a_task_group_too(dsn, clock, connection):
    async def handler(context):
        async with asyncio.TaskGroup() as group:
            group.create_task(context.step.sleep("a", LONG))
            group.create_task(context.step.sleep("b", LONG))
        return context.pass_number

    await run(dsn, handler, clock, passes=2)
    assert run_of(connection).result == 2


async def swallows(context):
    try:
        await context.step.sleep("rest", LONG)
    except BaseException:  # noqa: BLE001  it is the point
        return "went on"


async def raises_another(context):
    try:
        await context.step.sleep("rest", LONG)
    finally:
        raise ValueError("in the finally")


@pytest.mark.parametrize("handler", [swallows, raises_another])
async def test_a_handler_that_swallows_it_is_found_and_told(dsn, clock, connection, handler):
    await run(dsn, handler, retries=0)
    (dead,) = dead_letters(connection)
    assert "the handler caught `Suspended`, by which a step gives its slot back" in dead.message


async def test_no_step_is_done_once_the_slot_is_to_be_given_back(dsn, clock, connection):
    work = Work()

    async def handler(context):
        try:
            await context.step.sleep("rest", LONG)
        finally:
            await context.step.run("tear down", work)

    await run(dsn, handler, clock, passes=2)
    assert len(work.calls) == 1
    assert run_of(connection).state == "completed"


async def test_a_step_that_is_left_behind_when_the_handler_ends_does_nothing_more(dsn, connection):
    left, errors = [], []

    async def handler(context):
        async def later():
            await until_async(lambda: run_of(connection).state == "completed", "the end")
            try:
                await context.step.run("late", print)
            except BaseException as error:
                errors.append(type(error).__name__)
                raise

        left.append(asyncio.create_task(later()))

    await run(dsn, handler)
    await asyncio.wait(left)
    assert left[0].exception() is not None
    assert errors == ["PassEnded"]
    assert memos(connection) == []
