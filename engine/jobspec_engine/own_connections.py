"""Connections of our own: how they execute statements, and wait for answers in an event loop."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from psycopg import AsyncConnection, Connection
from psycopg.errors import QueryCanceled
from psycopg.pq import TransactionStatus
from psycopg.waiting import Ready, Wait

from jobspec_engine.session import Session

if TYPE_CHECKING:
    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGconn

Value = TypeVar("Value")

# Seconds that a statement whose caller was cancelled may take to end.
_ENDS_WITHIN = 5.0


class OwnConnection(Connection[Any]):
    """A connection that only we execute statements on."""

    @cached_property
    def session(self) -> Session:
        """How it executes statements."""
        return Session(self)


class OwnAsyncConnection(AsyncConnection[Any]):
    """A connection that only we execute statements on, and whose line stays in the event loop."""

    @cached_property
    def session(self) -> Session:
        """How it executes statements."""
        return Session(self)

    @cached_property
    def _line(self) -> _Line:
        return _Line(self.pgconn)

    async def wait(
        self,
        gen: PQGen[Value],
        interval: float = 0.1,
        timeout: float | None = None,  # noqa: ASYNC109  as psycopg has it
    ) -> Value:
        """Wait for what a generator returns. As psycopg's, which asks the loop anew each time."""
        try:
            waits_for = next(gen)
        except StopIteration as ended:
            returned: Value = ended.value
            return returned
        except BaseException:
            self._line.leave()
            raise
        if waits_for == Wait.R and timeout is None:
            try:
                answer = await self._line.answer(gen)
            except asyncio.CancelledError:
                await self._end(gen)
                raise
            if isinstance(answer, tuple):
                return answer[0]
            waits_for = answer
        self._line.leave()
        return await super().wait(_begun(gen, waits_for), interval, timeout)

    async def _end(self, gen: PQGen[Any]) -> None:
        """End a statement whose caller was cancelled, or else the connection, as psycopg does."""
        self._line.leave()
        if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
            return
        try:
            await self.cancel_safe(timeout=_ENDS_WITHIN)
            await super().wait(_begun(gen, Wait.R), timeout=_ENDS_WITHIN)
        except QueryCanceled:
            return
        except BaseException as error:
            await self.close()
            if not isinstance(error, Exception):  # cancelled once more
                raise

    async def close(self) -> None:
        """Close the connection."""
        self._line.leave()
        await super().close()

    def __del__(self, *given: Any) -> None:
        """Leave the loop also where nobody closed the connection: its line is closed now."""
        if "_line" in self.__dict__:
            self._line.leave()
        super().__del__(*given)


class _Line:
    """The line of a connection, on which the event loop has one reader for all answers.

    The loop must not have it any more when the line is closed, which libpq does as well when it
    breaks: another line that gets its number could not be read. So the reader goes at each error,
    and when something comes that nobody waits for.

    The loop holds it, so it does not hold the connection: that can go when nobody else does.
    """

    def __init__(self, pgconn: PGconn) -> None:
        self._pgconn = pgconn
        self._loop: asyncio.AbstractEventLoop | None = None  # which has the reader
        self._number = -1
        self._waiting: tuple[PQGen[Any], asyncio.Future[tuple[Any] | Wait]] | None = None

    async def answer(self, gen: PQGen[Value]) -> tuple[Value] | Wait:
        """Go on with a generator whenever the line can be read.

        Returns what it returned, or what else it waits for now.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self.leave()
            self._loop, self._number = loop, self._pgconn.socket
            loop.add_reader(self._number, self._read)
        answer: asyncio.Future[tuple[Value] | Wait] = loop.create_future()
        self._waiting = gen, answer
        return await answer

    def leave(self) -> None:
        """Take the reader out of the loop."""
        self._waiting = None
        if self._loop is not None:
            self._loop.remove_reader(self._number)
            self._loop = None

    def _read(self) -> None:
        if self._waiting is None:
            self.leave()  # it would be told of again and again
            return
        gen, answer = self._waiting
        if answer.done():  # cancelled: see `OwnAsyncConnection.wait`
            return
        try:
            waits_for = gen.send(Ready.R)
        except StopIteration as ended:
            self._waiting = None
            answer.set_result((ended.value,))
        except Exception as error:  # noqa: BLE001  who waits raises it
            self.leave()
            answer.set_exception(error)
        else:
            if waits_for != Wait.R:
                answer.set_result(waits_for)


def _begun(gen: PQGen[Value], waits_for: Wait) -> PQGen[Value]:
    """Return the rest of a generator that was begun, and waits."""
    try:
        while True:
            waits_for = gen.send((yield waits_for) or Ready.NONE)
    except StopIteration as ended:
        returned: Value = ended.value
        return returned
