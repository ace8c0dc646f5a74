"""How steps are told apart: by their names, in loops, in concurrent tasks."""

from __future__ import annotations

import asyncio

import pytest

from enginekit import (
    run_of,
)
from jobspec_engine.errors import StepError, StepFailed
from stepkit import LONG, Work, memos, run

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


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "must have 1 to 255 bytes, this has 0"),
        ("x" * 256, "must have 1 to 255 bytes, this has 256"),
        ("\0", "holds U.0000"),
    ],
)
async def test_a_name_that_can_not_be_kept_is_refused(dsn, connection, name, fault):
    async def handler(context):
        with pytest.raises(StepError, match=f"a step's name {fault}"):
            await context.step.run(name, print)

    await run(dsn, handler)
    assert run_of(connection).state == "completed"


async def test_a_task_too_deep_in_others_is_refused(dsn, connection):
    async def nest(step, depth):
        await step.run("n" * 255, print)
        if depth:
            await asyncio.create_task(nest(step, depth - 1))

    async def handler(context):
        await nest(context.step, 3)
        with pytest.raises(StepError, match="tasks are nested too deeply at step `n"):
            await nest(context.step, 4)

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


async def test_a_thread_of_a_handler_is_told_that_steps_are_not_for_it(dsn, connection):
    async def handler(context):
        with pytest.raises(StepError, match="`x` is called outside of its handler"):
            await asyncio.to_thread(lambda: context.step.run("x", print))

    await run(dsn, handler)
    assert run_of(connection).state == "completed"


async def test_a_sync_handler_is_told_that_steps_are_not_for_it(dsn, connection):
    def handler(context):
        with pytest.raises(StepError, match="steps are for `async def` handlers"):
            context.step.run("x", print)

    await run(dsn, handler)
    assert run_of(connection).state == "completed"
