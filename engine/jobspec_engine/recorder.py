"""How passes ended, recorded in batches behind them: no slot waits for its record."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Self, TypeVar

from jobspec_engine.calls import MOST_CHARACTERS
from jobspec_engine.database import is_away
from jobspec_engine.rows import Completion, Failure, Suspension

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence
    from types import TracebackType

    from jobspec_engine.persistence import Persistence
    from jobspec_engine.rows import Ended
    from jobspec_engine.statements import Statements

OneEnded = TypeVar("OneEnded", Completion, Failure, Suspension)

log = logging.getLogger(__name__)

# How many ends one statement records, and how many may wait for theirs before claims pause.
_BATCH = 1000
_BACKLOG = 2000

_MAX_MESSAGE = 1000


class Recorder:
    """Records ends, and tells which it is done with, all of one kind: `on_recorded(ended, kept)`.

    `kept` has the ids of the runs whose ends were recorded. One that it lacks was held no longer,
    or its end could not be recorded: its lease runs out, and it runs again.

    Ends that are handed in while one batch is on its way make the next. A batch that the database
    refuses is recorded one by one; a run of which it refuses the success as well fails with what it
    says of it, since its handler would only do the same again.
    """

    def __init__(
        self,
        statements: Statements,
        database: Persistence,
        on_recorded: Callable[[Sequence[Ended], Collection[int]], None],
        *,
        backlog: int = _BACKLOG,
    ) -> None:
        self._statements = statements
        self._database = database
        self._on_recorded = on_recorded
        self._backlog = backlog
        self._waiting: deque[Ended] = deque()
        self._under_way = 0
        self._running: asyncio.Task[None] | None = None
        # Not that of a handler, whose task may be the one that hands in an end.
        self._context = copy_context()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Record the rest; after an error nothing of it is tried twice."""
        if error is not None:
            self._database.give_up()
        while self._running is not None and not self._running.done():
            await asyncio.wait([self._running])

    @property
    def idle(self) -> bool:
        """Whether everything that was handed in is recorded."""
        return self._running is None or self._running.done()

    @property
    def full(self) -> bool:
        """Whether so many ends wait that no run should be claimed."""
        return len(self._waiting) + self._under_way >= self._backlog

    def record(self, ended: Ended) -> None:
        """Hand in how a pass ended; a `Suspension` until no time gives its run back."""
        self._waiting.append(ended)
        if self.idle:
            self._running = asyncio.create_task(self._drain(), context=self._context)

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch = self._next_batch()
                self._under_way = len(batch)
                await self._write_each_kind(batch)
        finally:
            self._under_way = 0

    def _next_batch(self) -> list[Ended]:
        batch: list[Ended] = []
        size = 0
        while self._waiting and len(batch) < _BATCH:
            size += _size(self._waiting[0])
            if batch and size > MOST_CHARACTERS:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _write_each_kind(self, batch: Sequence[Ended]) -> None:
        await self._write(self._complete, [one for one in batch if isinstance(one, Completion)])
        await self._write(self._fail, [one for one in batch if isinstance(one, Failure)])
        await self._write(self._suspend, [one for one in batch if isinstance(one, Suspension)])

    async def _write(
        self,
        write: Callable[[Sequence[OneEnded]], Awaitable[set[int]]],
        batch: Sequence[OneEnded],
    ) -> None:
        if not batch:
            return
        kept: set[int] = set()
        try:
            kept = await write(batch)
        except Exception as error:
            if is_away(error):  # the database failed for all of them alike
                log.warning("%d ends not recorded, leases will run out: %s", len(batch), error)
            elif len(batch) > 1:
                for one in batch:
                    await self._write(write, [one])
                return
            else:
                log.exception("run %d: its end can't be recorded", batch[0].run_id)
                if isinstance(batch[0], Completion):
                    await self._write(self._fail, [_refused(batch[0], error)])
                    return
        self._on_recorded(batch, kept)

    async def _complete(self, batch: Sequence[Completion]) -> set[int]:
        return set(await self._database.fetch(self._statements.complete(batch)))

    async def _fail(self, batch: Sequence[Failure]) -> set[int]:
        return set(await self._database.fetch(self._statements.fail(batch)))

    async def _suspend(self, batch: Sequence[Suspension]) -> set[int]:
        held = await self._database.fetch(self._statements.release(batch))
        return {one.run_id for one in held}


def _size(ended: Ended) -> int:
    return len(ended.result) if isinstance(ended, Completion) else 0


def _refused(completion: Completion, error: Exception) -> Failure:
    """Return how a run ends whose success the database refused to record."""
    said = " ".join(str(error).split())[:_MAX_MESSAGE]
    message = f"its result can't be recorded: {said}"
    return Failure(
        completion.run_id,
        completion.lease_token,
        delay=None,
        reason="not-retriable",
        message=message,
        error=json.dumps(message),
    )
