"""A worker's connections, and its patience with a database that can't be reached."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self, TypeVar

from psycopg import AsyncConnection, OperationalError
from psycopg.errors import IdleInTransactionSessionTimeout
from psycopg_pool import AsyncConnectionPool
from tenacity import AsyncRetrying, before_sleep_log, retry_if_exception_type
from tenacity.wait import wait_random_exponential

from jobspec_engine.database import connection_settings
from jobspec_engine.statements import drive_async, fetch_async

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from jobspec_engine.statements import Call, Steps

log = logging.getLogger(__name__)

Row = TypeVar("Row")
Result = TypeVar("Result")


class Persistence:
    """Executes the statements of a worker, again and again while the database can't be reached.

    Once it is told to give up a failure is raised: `psycopg.OperationalError`.
    """

    def __init__(self, dsn: str) -> None:
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] = AsyncConnectionPool(
            dsn,
            min_size=1,
            max_size=3,  # a claim, a record and a reclaim at once
            kwargs=connection_settings(dsn, "jobspec worker"),
            open=False,
        )
        self._given_up = False

    async def __aenter__(self) -> Self:
        await self._pool.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._pool.close()

    def give_up(self) -> None:
        """Try nothing again from now on."""
        self._given_up = True

    async def fetch(self, call: Call[Row]) -> list[Row]:
        """Execute a statement and return its rows."""
        result: list[Row] = await self.retrying()(self.fetch_once, call)
        return result

    async def fetch_once(self, call: Call[Row]) -> list[Row]:
        """Execute a statement and return its rows, without a second try."""
        async with self._pool.connection() as connection:
            return await fetch_async(connection, call)

    async def drive(self, steps: Steps[Result]) -> Result:
        """Drive a few statements, each of them in a transaction of its own."""
        try:
            call = next(steps)
            while True:
                call = steps.send(await self.fetch(call))
        except StopIteration as finished:
            result: Result = finished.value
            return result

    async def transact(self, steps: Callable[[], Steps[Result]]) -> Result:
        """Drive a few statements in one transaction, each time from the start."""
        result: Result = await self.retrying()(self._transact_once, steps)
        return result

    async def _transact_once(self, steps: Callable[[], Steps[Result]]) -> Result:
        async with self._pool.connection() as connection, connection.transaction():
            return await drive_async(connection, steps())

    def retrying(self) -> AsyncRetrying:
        """Return what calls a function again while the database can't be reached."""
        return AsyncRetrying(
            retry=retry_if_exception_type((OperationalError, IdleInTransactionSessionTimeout)),
            wait=wait_random_exponential(multiplier=0.1, max=10),
            stop=lambda _: self._given_up,
            before_sleep=before_sleep_log(log, logging.WARNING),
            reraise=True,
        )
