"""Small calls as large ones: what becomes of those who wait for one."""

from __future__ import annotations

import asyncio

import pytest

from jobspec_engine.coalesce import Coalescer


class Flush:
    """Gives back what it is handed, once it is let through."""

    def __init__(self):
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self.error = None
        self.batches = []

    async def __call__(self, items):
        self.batches.append(list(items))
        self.entered.set()
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return items


@pytest.fixture
def flush():
    return Flush()


@pytest.fixture
def coalescer(flush):
    return Coalescer(flush)


async def hand_in(coalescer, flush, *items):
    """Hand items in, the first of which is on its way by itself when this returns."""
    first = asyncio.create_task(coalescer(items[0]))
    await flush.entered.wait()
    return [first, *[asyncio.create_task(coalescer(item)) for item in items[1:]]]


async def test_items_that_come_while_a_batch_is_on_its_way_are_the_next(coalescer, flush):
    calls = await hand_in(coalescer, flush, 1, 2, 3)
    flush.open.set()
    assert await asyncio.gather(*calls) == [1, 2, 3]
    assert flush.batches == [[1], [2, 3]]


async def test_who_was_answered_hands_in_the_next_item_with_those_that_wait(coalescer, flush):
    async def hand_in_two():
        await coalescer(1)
        await coalescer(3)

    first = asyncio.create_task(hand_in_two())
    await flush.entered.wait()
    second = asyncio.create_task(coalescer(2))
    await asyncio.wait([second], timeout=0)
    flush.open.set()
    await asyncio.gather(first, second)
    assert flush.batches == [[1], [2, 3]]


async def test_items_that_follow_one_another_take_one_task(coalescer, flush):
    flush.open.set()
    await coalescer(1)
    running = coalescer._running
    await coalescer(2)
    assert coalescer._running is running is not None
    await coalescer.join()
    assert coalescer._running is None


async def test_whoever_joins_waits_until_all_is_settled(coalescer, flush):
    calls = await hand_in(coalescer, flush, 1, 2)
    joined = asyncio.create_task(coalescer.join())
    await asyncio.wait([joined], timeout=0)
    assert not joined.done()
    flush.open.set()
    await joined
    assert [call.result() for call in calls if call.done()] == [1, 2]


async def test_a_flush_that_is_cancelled_leaves_nobody_waiting(coalescer, flush):
    calls = await hand_in(coalescer, flush, 1, 2)
    await asyncio.wait(calls, timeout=0)
    coalescer._running.cancel()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one) for one in ended] == [asyncio.CancelledError] * 2
    assert flush.batches == [[1]]


async def test_a_flush_that_is_cancelled_at_one_item_of_a_batch_leaves_nobody_waiting():
    async def flush(items):
        if len(items) > 1:
            raise ValueError("one by one")
        raise asyncio.CancelledError

    coalescer = Coalescer(flush)
    calls = [asyncio.create_task(coalescer(item)) for item in (1, 2, 3)]
    await asyncio.wait(calls, timeout=60)
    assert [call.cancelled() for call in calls] == [True] * 3


async def test_a_task_that_is_cancelled_before_it_begins_leaves_nobody_waiting(coalescer, flush):
    def cancel():
        coalescer._running.cancel()

    first = asyncio.create_task(coalescer(1))
    asyncio.get_running_loop().call_soon(cancel)  # between the caller's turn and the task's
    await asyncio.wait([first], timeout=60)
    assert first.cancelled()
    await coalescer.join()
    flush.open.set()
    assert await coalescer(2) == 2
    assert flush.batches == [[2]]


@pytest.mark.parametrize("error", [None, ValueError("no")])
async def test_a_caller_who_gave_up_is_in_nobody_s_way(coalescer, flush, error):
    gave_up, waits = await hand_in(coalescer, flush, 1, 2)
    gave_up.cancel()
    await asyncio.wait([gave_up, waits], timeout=0)
    flush.error = error
    flush.open.set()
    (ended,) = await asyncio.gather(waits, return_exceptions=True)
    assert ended == (error or 2)
    assert gave_up.cancelled()
    await coalescer.join()


async def test_large_items_are_not_flushed_together():
    batches = []

    async def flush(batch):
        batches.append(list(batch))
        return batch

    coalescer = Coalescer(flush, size=lambda item: item)
    mebi = 1 << 20
    async with asyncio.TaskGroup() as group:
        for size in (16 * mebi, 16 * mebi, 1, 40 * mebi, 1):
            group.create_task(coalescer(size))
    assert batches == [[16 * mebi, 16 * mebi], [1], [40 * mebi], [1]]
