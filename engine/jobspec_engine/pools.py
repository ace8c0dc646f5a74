"""The connections of clients: opened before use, waited for a while, with errors that advise."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from psycopg import AsyncConnection, Connection, Error
from psycopg.errors import (
    InvalidSchemaName,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedObject,
    UndefinedTable,
)
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolClosed, PoolTimeout

from jobspec_engine.arguments import seconds_of
from jobspec_engine.arrays import teach
from jobspec_engine.calls import drive, drive_async
from jobspec_engine.database import (
    connection_settings,
    is_ended,
    pause_before_again,
    set_up_session,
    set_up_session_async,
)
from jobspec_engine.errors import ArgumentError, MigrationError, NotOpenError, UnreachableError
from jobspec_engine.own_connections import OwnAsyncConnection, OwnConnection

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from psycopg import BaseConnection

    from jobspec_engine.calls import Calls

Result = TypeVar("Result")

CONNECT_TIMEOUT = timedelta(seconds=10)

# What Postgres says of a statement for tables that are not there, or older ones.
_NOT_MIGRATED = (
    InvalidSchemaName,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedObject,
    UndefinedTable,
)

# Where the connection of psycopg is in one of SQLAlchemy, by the client that is to use it.
_OF_SQLALCHEMY = {
    "Client": "pass connection.connection.driver_connection",
    "AsyncClient": "pass (await connection.get_raw_connection()).driver_connection",
}

_pool_log = logging.getLogger("psycopg.pool")


class LastError(logging.Filter):
    """Keeps why a pool could not connect, instead of a line in the log for each of its tries.

    The pool tells nobody else: who waits for a connection hears of the time that has passed. With
    `first` the log has a line for each error that is another than the last.
    """

    def __init__(
        self, pool: ConnectionPool[Any] | AsyncConnectionPool[Any], *, first: bool = False
    ) -> None:
        super().__init__()
        self._first = first
        self._pool_name = pool.name
        self._error: object = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Let all records through but those of this pool's tries to connect."""
        args, words = record.args, str(record.msg)
        if not isinstance(args, tuple) or not args or args[0] != self._pool_name:
            return True
        if words.startswith("reconnection attempt in pool"):  # the pool begins anew
            return False
        if not words.startswith("error connecting in"):
            return True
        told = str(args[1]) == str(self._error)
        self._error = args[1]
        return self._first and not told

    def watch(self) -> None:
        """Begin to listen."""
        _pool_log.addFilter(self)

    def leave(self) -> None:
        """Listen no more."""
        _pool_log.removeFilter(self)

    def forget(self) -> None:
        """Forget the error: a connection was made."""
        self._error = None

    def unreachable(self, seconds: float) -> UnreachableError:
        """Return what to raise when no connection came in time."""
        within = f"no connection to the database within {seconds:g} s"
        if self._error is None:
            return UnreachableError(f"{within}: all were in use, or it did not answer")
        return UnreachableError(f"{within}: {' '.join(str(self._error).split())}")


class Migrated:
    """Raises `MigrationError` for a statement that does not find what it needs in the schema.

    Not a generator, as others are, since each statement is in it.
    """

    def __init__(self, schema: str) -> None:
        self._schema = schema

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, _NOT_MIGRATED):
            raise MigrationError(
                f"schema `{self._schema}` of this database is not what this code needs"
                f" ({error.diag.message_primary}): run `jobspec migrate --schema {self._schema}` on"
                " it, or name the schema that was migrated"
            ) from error


class _Settings(TypedDict):
    """What both kinds of pool are made with."""

    min_size: int
    max_size: int
    kwargs: dict[str, Any]
    timeout: float
    reconnect_timeout: float
    open: bool


def _settings(dsn: str, size: int, seconds: float) -> _Settings:
    return {
        "min_size": 1,
        "max_size": size,
        "kwargs": connection_settings(dsn, "jobspec client"),
        "timeout": seconds,
        "reconnect_timeout": seconds,  # pauses between tries double, and would for minutes
        "open": False,
    }


class Pool:
    """The connections of a `Client`."""

    def __init__(self, dsn: str, schema: str, size: int, connect_timeout: timedelta) -> None:
        self._migrated = Migrated(schema)
        self._seconds = seconds_of("connect_timeout", connect_timeout)
        self._pool: ConnectionPool[OwnConnection] = ConnectionPool(
            dsn,
            connection_class=OwnConnection,
            configure=_configure,
            **_settings(dsn, size, self._seconds),
        )
        self._last_error = LastError(self._pool)

    def open(self) -> None:
        """Begin to connect, and wait for nothing. Raises `NotOpenError` once it was closed."""
        try:
            self._pool.open()
        except PoolClosed:
            raise _not_open("Client", "with", "open()") from None
        self._last_error.watch()

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()
        self._last_error.leave()

    def drive(
        self,
        calls: Callable[[int], Calls[Result]],
        given: Connection[Any] | None = None,
        *,
        whole: bool = False,
        harmless: bool = False,
    ) -> Result:
        """Execute what a generator yields, on the caller's connection or one of ours.

        `whole`: as one transaction, or a part of the caller's. On a connection of ours `calls` is
        called anew, with the number of tries, after a deadlock or a serialization failure, and
        after the loss of the connection if it is `harmless` to execute twice what was committed.
        Raises `TypeError` or `ArgumentError` for a connection of the caller's that won't do,
        `NotOpenError`, `UnreachableError`, `MigrationError` for tables that are not there, and
        `psycopg.Error`.
        """
        tries = 1
        while True:
            try:
                return self._drive_once(calls(tries), given, whole=whole)
            except Error as error:
                if given is not None:
                    raise
                time.sleep(pause_before_again(error, tries, harmless=harmless))
                tries += 1

    def _drive_once(
        self, calls: Calls[Result], given: Connection[Any] | None, *, whole: bool
    ) -> Result:
        used = self._own() if given is None else _checked(given)
        try:
            with self._migrated:
                if not whole:
                    return drive(used, calls)
                if not used.autocommit:
                    used.execute("select")  # begins the caller's, if need be: ours is in it then
                with used.transaction():
                    return drive(used, calls)
        finally:
            if isinstance(used, OwnConnection):
                self._pool.putconn(used)

    def _own(self) -> OwnConnection:
        """Take a connection of ours whose line is there.

        All that were idle may have been ended, by one restart. The pool's own check would pause
        longer after each of them.
        """
        try:
            own = self._pool.getconn()
            for _ in range(self._pool.max_size):
                if not is_ended(own):
                    break
                own.close()
                self._pool.putconn(own)  # makes another
                own = self._pool.getconn()
        except PoolTimeout:
            raise self._last_error.unreachable(self._seconds) from None
        except PoolClosed:
            raise _not_open("Client", "with", "open()") from None
        self._last_error.forget()
        return own


class AsyncPool:
    """The connections of an `AsyncClient`. As `Pool`."""

    def __init__(self, dsn: str, schema: str, size: int, connect_timeout: timedelta) -> None:
        self._migrated = Migrated(schema)
        self._seconds = seconds_of("connect_timeout", connect_timeout)
        self._pool: AsyncConnectionPool[OwnAsyncConnection] = AsyncConnectionPool(
            dsn,
            connection_class=OwnAsyncConnection,
            configure=_configure_async,
            **_settings(dsn, size, self._seconds),
        )
        self._last_error = LastError(self._pool)

    async def open(self) -> None:
        """Begin to connect, and wait for nothing. Raises `NotOpenError` once it was closed."""
        try:
            await self._pool.open()
        except PoolClosed:
            raise _not_open("AsyncClient", "async with", "await open()") from None
        self._last_error.watch()

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.close()
        self._last_error.leave()

    async def drive(
        self,
        calls: Callable[[int], Calls[Result]],
        given: AsyncConnection[Any] | None = None,
        *,
        whole: bool = False,
        harmless: bool = False,
    ) -> Result:
        """Execute what a generator yields. As `Pool.drive`."""
        tries = 1
        while True:
            try:
                return await self._drive_once(calls(tries), given, whole=whole)
            except Error as error:
                if given is not None:
                    raise
                await asyncio.sleep(pause_before_again(error, tries, harmless=harmless))
                tries += 1

    async def _drive_once(
        self, calls: Calls[Result], given: AsyncConnection[Any] | None, *, whole: bool
    ) -> Result:
        used = await self._own() if given is None else _checked_async(given)
        try:
            with self._migrated:
                if not whole:
                    return await drive_async(used, calls)
                if not used.autocommit:
                    await used.execute("select")  # as in `Pool`
                async with used.transaction():
                    return await drive_async(used, calls)
        finally:
            if isinstance(used, OwnAsyncConnection):
                await self._pool.putconn(used)

    async def _own(self) -> OwnAsyncConnection:
        """Take a connection of ours whose line is there. As `Pool`."""
        try:
            own = await self._pool.getconn()
            for _ in range(self._pool.max_size):
                if not is_ended(own):
                    break
                await own.close()
                await self._pool.putconn(own)
                own = await self._pool.getconn()
        except PoolTimeout:
            raise self._last_error.unreachable(self._seconds) from None
        except PoolClosed:
            raise _not_open("AsyncClient", "async with", "await open()") from None
        self._last_error.forget()
        return own


def _not_open(client: str, block: str, call: str) -> NotOpenError:
    return NotOpenError(
        f"this {client} is not open: use it in `{block}`, or call `{call}` first; once it is"
        " closed, make another one"
    )


def _checked(given: Connection[Any]) -> Connection[Any]:
    """Return the caller's connection, made fit for our statements.

    Raises `TypeError` for one of another kind, `ArgumentError` for one that reads no text.
    """
    if not isinstance(given, Connection):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _wrong_kind("Client", "psycopg.Connection", given)
    _require_text(given)
    teach(given)
    return given


def _checked_async(given: AsyncConnection[Any]) -> AsyncConnection[Any]:
    """Return the caller's connection. As `_checked`."""
    if not isinstance(given, AsyncConnection):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _wrong_kind("AsyncClient", "psycopg.AsyncConnection", given)
    _require_text(given)
    teach(given)
    return given


def _wrong_kind(client: str, wanted: str, given: object) -> TypeError:
    package = type(given).__module__.partition(".")[0]
    advice = f": {_OF_SQLALCHEMY[client]}" if package == "sqlalchemy" else ""
    kind = f"{package}.{type(given).__name__}"
    return TypeError(f"{client} takes a connection of type {wanted}, not {kind}{advice}")


def _require_text(given: BaseConnection[Any]) -> None:
    """Refuse a connection on which psycopg gives text as bytes: what was sent would not be told."""
    if given.info.encoding == "ascii":
        raise ArgumentError(
            "this connection has the client_encoding SQL_ASCII, in which no text can be read:"
            " connect with client_encoding=utf8"
        )


def _configure(connection: Connection[Any]) -> None:
    set_up_session(connection)


async def _configure_async(connection: AsyncConnection[Any]) -> None:
    await set_up_session_async(connection)
