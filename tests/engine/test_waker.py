"""Wake-ups that an async client gives: none is lost where one was cancelled."""

from __future__ import annotations

import asyncio

from jobspec_engine.waker import AsyncWaker


async def test_a_wake_up_that_is_cancelled_before_it_begins_keeps_no_later_one_from_being_given():
    given = []

    async def wake():
        given.append("wake")

    waker = AsyncWaker(wake)
    waker()
    waker._running.cancel()
    await asyncio.wait([waker._running])
    waker()
    await waker.join()
    assert given == ["wake"]


def test_a_client_joins_no_wake_up_of_a_loop_that_is_closed():
    async def wake():
        pass

    async def give():
        waker()
        await waker.join()

    waker = AsyncWaker(wake)
    asyncio.run(give())
    asyncio.run(waker.join())
