"""A worker's connections, and its patience with a database that can't be reached."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Self, TypeVar
from weakref import WeakSet

from psycopg_pool import AsyncConnectionPool
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception
from tenacity.wait import wait_random_exponential

from jobspec_engine.calls import drive_async, fetch_async
from jobspec_engine.database import (
    answered_within,
    connection_settings,
    hang_up,
    is_away,
    set_up_session_async,
)
from jobspec_engine.own_connections import OwnAsyncConnection
from jobspec_engine.pools import LastError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from jobspec_engine.calls import Call, Calls

log = logging.getLogger(__name__)

# Seconds that a statement waits for a connection. Then the pool begins anew, too: its pauses double
# from one try to the next, and would grow as long as the outage was.
_CONNECTED_WITHIN = 4.0

# Seconds between two tries of a statement, at most.
_LONGEST_PAUSE = 3.0

Row = TypeVar("Row")
Result = TypeVar("Result")


class Persistence:
    """Executes the statements of a worker, again and again while the database can't be reached.

    A statement that takes longer than `patience` seconds counts as lost: all connections are made
    anew then, since a line can break without a word. Once it is told to give up it raises what
    happens: `psycopg.OperationalError`.
    """

    def __init__(self, dsn: str, patience: float) -> None:
        self._patience = patience
        self._connections: WeakSet[OwnAsyncConnection] = WeakSet()
        self._pool: AsyncConnectionPool[OwnAsyncConnection] = AsyncConnectionPool(
            dsn,
            connection_class=OwnAsyncConnection,
            min_size=1,
            max_size=3,  # a claim, a record and a reclaim at once
            kwargs=connection_settings(dsn, "jobspec worker"),
            configure=self._configure,
            timeout=_CONNECTED_WITHIN,
            reconnect_timeout=_CONNECTED_WITHIN,
            open=False,
        )
        self._pool_errors = LastError(self._pool, first=True)
        # How many tries were told of, by the class of their error, since the database answered.
        self._told: dict[str, int] = {}
        self._given_up = False

    async def __aenter__(self) -> Self:
        self._pool_errors.watch()
        await self._pool.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._pool.close()
        self._pool_errors.leave()

    def give_up(self) -> None:
        """Try nothing again from now on."""
        self._given_up = True

    async def fetch(self, call: Call[Row]) -> list[Row]:
        """Execute a statement and return its rows."""
        try:
            return await self.fetch_once(call)  # retrying costs more CPU than the statement
        except Exception as error:
            if not is_away(error):
                raise
        result: list[Row] = await self.retrying()(self.fetch_once, call)
        return result

    async def fetch_once(self, call: Call[Row]) -> list[Row]:
        """Execute a statement and return its rows, without a second try."""
        connection = await self._pool.getconn()
        try:
            with answered_within(self._patience, self._drop_connections):
                rows = await fetch_async(connection, call)
        finally:
            await self._pool.putconn(connection)
        self._answered()
        return rows

    async def drive(self, calls: Calls[Result]) -> Result:
        """Drive a few statements, each of them in a transaction of its own."""
        try:
            call = next(calls)
            while True:
                call = calls.send(await self.fetch(call))
        except StopIteration as finished:
            result: Result = finished.value
            return result

    async def transact(self, calls: Callable[[], Calls[Result]]) -> Result:
        """Drive a few statements in one transaction, each time from the start."""
        result: Result = await self.retrying()(self._transact_once, calls)
        return result

    async def _transact_once(self, calls: Callable[[], Calls[Result]]) -> Result:
        async with self._pool.connection() as connection:
            with answered_within(self._patience, self._drop_connections):
                async with connection.transaction():
                    return await drive_async(connection, calls())

    def retrying(self) -> AsyncRetrying:
        """Return what calls a function again while the database can't be reached."""
        return AsyncRetrying(
            retry=retry_if_exception(is_away),
            wait=wait_random_exponential(multiplier=0.1, max=_LONGEST_PAUSE),
            stop=lambda _: self._given_up,
            before_sleep=self._tell,
            reraise=True,
        )

    async def _configure(self, connection: OwnAsyncConnection) -> None:
        if not await set_up_session_async(connection):
            connection.prepare_threshold = 0  # a worker's statements do come again
        self._connections.add(connection)

    def _drop_connections(self) -> None:
        log.warning("the database has not answered for %g s: connecting anew", self._patience)
        for connection in self._connections:
            hang_up(connection)

    def _answered(self) -> None:
        self._told.clear()
        self._pool_errors.forget()

    def _tell(self, state: RetryCallState) -> None:
        """Log a try in vain: of several statements that wait alike, each number of tries once."""
        error = state.outcome and state.outcome.exception()
        kind = type(error).__name__
        if self._told.get(kind, 0) >= state.attempt_number:
            return
        self._told[kind] = state.attempt_number
        log.warning(
            "the database can't be reached, try %d in %.1f s: %s",
            state.attempt_number + 1,
            state.upcoming_sleep,
            " ".join(str(error).split()),
        )
