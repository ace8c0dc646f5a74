"""Many small calls as few large ones: while one batch is on its way, the next collects."""

from __future__ import annotations

import asyncio
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, TypeVar

from jobspec_engine.calls import MOST_CHARACTERS
from jobspec_engine.database import is_away

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")


class Coalescer(Generic[Item, Result]):
    """Hand single items to `flush` in batches, and each its own result back.

    Nothing waits for a batch to fill: an item that finds no batch on its way leaves at once, with
    those handed in during the same turn of the event loop. A failed batch of several items is
    flushed again one by one, so that a bad item fails alone: `flush` must be all or nothing. When
    the database itself fails, all of the batch fail.

    A batch has at most `limit` items and, where `size` tells an item's characters, as many of them
    as one statement carries.
    """

    def __init__(
        self,
        flush: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        *,
        limit: int = 1000,
        size: Callable[[Item], int] | None = None,
    ) -> None:
        self._flush = flush
        self._limit = limit
        self._size = size
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, item: Item) -> Result:
        """Return the result of `item`, or raise what flushing it raised."""
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, result))
        if self._running is None:
            self._running = asyncio.create_task(self._drain())
            self._running.add_done_callback(self._ended)
        return await result

    async def join(self) -> None:
        """Wait until everything that was handed in is settled."""
        while self._running is not None:
            await asyncio.wait([self._running])

    async def _drain(self) -> None:
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        try:
            while self._waiting:
                batch = self._next_batch()
                await self._settle(batch)
                # Who was answered hands in the next item in the turn that begins here: it joins
                # those that wait, and finds a task.
                await asyncio.sleep(0)
        except BaseException as stopped:
            _fail(batch + self._waiting, stopped)
            self._waiting.clear()
            raise
        finally:
            self._running = None

    def _ended(self, drain: asyncio.Task[None]) -> None:
        """Leave nobody waiting for a task that was cancelled before it began."""
        if self._running is drain:  # one that began has said that it ends
            self._running = None
            _fail(self._waiting, asyncio.CancelledError())
            self._waiting.clear()

    def _next_batch(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        count = min(len(self._waiting), self._limit)
        if self._size is not None and count > 1:
            sizes = accumulate(self._size(item) for item, _ in self._waiting[:count])
            count = max(sum(size <= MOST_CHARACTERS for size in sizes), 1)
        batch = self._waiting[:count]
        del self._waiting[:count]
        return batch

    async def _settle(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._flush([item for item, _ in batch])
        except Exception as error:  # noqa: BLE001  the callers raise it
            if len(batch) == 1 or is_away(error):  # the database failed for all of them alike
                _fail(batch, error)
                return
            for entry in batch:
                await self._settle([entry])
            return
        for (_, result), value in zip(batch, results, strict=True):
            if not result.done():
                result.set_result(value)


def _fail(batch: list[tuple[Item, asyncio.Future[Result]]], error: BaseException) -> None:
    """Fail all results of a batch whose callers still wait for them."""
    for _, result in batch:
        if not result.done():
            result.set_exception(error)
