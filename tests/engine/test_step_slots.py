"""Sleeps, the slots that they give back, and how a handler is left then."""

from __future__ import annotations

import asyncio
import gc
from datetime import datetime, timedelta

import pytest

from enginekit import (
    count,
    dead_letters,
    job,
    run_of,
    run_until_idle,
    until_async,
    working,
)
from jobspec_engine.errors import StepError
from stepkit import LONG, SHORT, Work, memos, run, send

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


async def test_and_one_in_whose_body_the_step_is(dsn, clock, connection):
    async def handler(context):
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait()).cancel()
            await context.step.sleep("rest", LONG)
        return context.pass_number

    await run(dsn, handler, clock, passes=2)
    assert run_of(connection).result == 2


async def test_a_plain_await_beside_a_parked_step_ends_with_the_pass(dsn, clock, connection):
    left = []

    async def watch():
        try:
            await asyncio.Event().wait()
        finally:
            left.append(run_of(connection).state)

    async def handler(context):
        if context.pass_number == 1:
            await asyncio.gather(context.step.sleep("rest", LONG), watch())
        else:
            await context.step.sleep("rest", LONG)

    await run(dsn, handler, clock)
    assert (left, run_of(connection).state) == (["running"], "pending")


async def test_so_does_one_of_the_handler_itself_beside_a_task_with_a_parked_step(
    dsn, clock, connection
):
    async def handler(context):
        timer = asyncio.create_task(context.step.sleep("rest", LONG))
        if context.pass_number == 1:
            await asyncio.Event().wait()
        await timer
        return context.pass_number

    await run(dsn, handler, clock, passes=2)
    assert run_of(connection).result == 2


async def waits(context):
    await asyncio.wait([asyncio.create_task(context.step.sleep("rest", LONG))])


async def waits_in_time(context):
    await asyncio.wait_for(context.step.sleep("rest", LONG), 60)


async def waits_behind_a_shield(context):
    await asyncio.shield(context.step.sleep("rest", LONG))


async def waits_for_what_ends_first(context):
    for first in asyncio.as_completed([context.step.sleep("rest", LONG)]):
        await first


async def waits_under_a_timeout(context):
    async with asyncio.timeout(60):
        await context.step.sleep("rest", LONG)


async def gathers_gathers(context):
    await asyncio.gather(
        asyncio.gather(context.step.sleep("a", LONG), asyncio.Event().wait()),
        asyncio.gather(context.step.sleep("b", LONG), return_exceptions=True),
    )


async def lets_an_async_generator_wait(context):
    async def ticks():
        await context.step.sleep("rest", LONG)
        yield 1

    async for _ in ticks():
        return


async def cleans_up(context):
    try:
        await context.step.sleep("rest", LONG)
    finally:
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    "handler",
    [
        waits,
        waits_in_time,
        waits_behind_a_shield,
        waits_for_what_ends_first,
        waits_under_a_timeout,
        gathers_gathers,
        lets_an_async_generator_wait,
        cleans_up,
    ],
)
async def test_a_handler_may_wait_for_its_steps_in_any_way(dsn, clock, connection, caplog, handler):
    compiled = job(handler=handler, retries=0)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    run = run_of(connection)
    assert (run.state, run.run_at, run.attempt) == ("pending", clock.now() + LONG, 0)
    gc.collect()
    assert caplog.records == []


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
