"""How the engine connects: a dead peer is noticed in seconds, and a pooler may be between."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from psycopg import OperationalError
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import (
    DeadlockDetected,
    IdleInTransactionSessionTimeout,
    ProgramLimitExceeded,
    ReadOnlySqlTransaction,
    StatementTooComplex,
    TooManyArguments,
    TooManyColumns,
)
from tenacity import retry, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random_exponential

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from psycopg import AsyncConnection, BaseConnection, Connection

# libpq's names and units: seconds, but milliseconds for tcp_user_timeout.
_DEFAULTS: dict[str, str | int] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}

Result = TypeVar("Result")

# What a database raises that is away: for now, or until its standby has taken over.
_AWAY = (OperationalError, IdleInTransactionSessionTimeout, ReadOnlySqlTransaction)

# What it raises of a statement that is too much for it, now and every time.
_TOO_MUCH = (ProgramLimitExceeded, StatementTooComplex, TooManyArguments, TooManyColumns)

_WHO_ANSWERS = "select pg_catalog.pg_backend_pid()"


def connection_settings(dsn: str, application_name: str) -> dict[str, str | int | bool]:
    """Return what to connect with beside `dsn`, whose own settings win.

    Raises `psycopg.ProgrammingError` for a DSN that can't be read.
    """
    given = conninfo_to_dict(dsn)
    defaults = {**_DEFAULTS, "application_name": application_name}
    return {"autocommit": True} | {k: v for k, v in defaults.items() if k not in given}


def is_away(error: BaseException) -> bool:
    """Tell whether an error is of a database that can't be reached or used for now."""
    return isinstance(error, _AWAY) and not isinstance(error, _TOO_MUCH)


def suit_pooler(connection: Connection[Any]) -> bool:
    """Prepare no statements on a connection that goes through a pooler; tell whether it does.

    A pooler such as PgBouncer may have each transaction answered by another session, which does not
    know what was prepared. It gives itself away by the session's id, of which it tells its own.
    """
    row = connection.execute(_WHO_ANSWERS).fetchone()
    return _suit(connection, row)


async def suit_pooler_async(connection: AsyncConnection[Any]) -> bool:
    """Prepare no statements on a connection that goes through a pooler; tell whether it does."""
    row = await (await connection.execute(_WHO_ANSWERS)).fetchone()
    return _suit(connection, row)


def _suit(connection: BaseConnection[Any], row: Any) -> bool:
    pooled = row is not None and row[0] != connection.info.backend_pid
    if pooled:
        connection.prepare_threshold = None
    return pooled


def again_after_deadlock(*, unless: bool) -> Callable[[Callable[[], Result]], Callable[[], Result]]:
    """Have a transaction tried again that lost a deadlock, unless it is the caller's.

    A single statement takes its locks in one order. Two that send many events in several may meet.
    """
    return retry(
        retry=retry_if_exception_type(DeadlockDetected),
        stop=stop_after_attempt(1 if unless else 10),
        wait=wait_random_exponential(multiplier=0.1, max=5),
        reraise=True,
    )


def hang_up(connection: BaseConnection[Any]) -> None:
    """End a connection whose peer is silent: who waits for it gets an `OperationalError`.

    A cancelled query would not do: psycopg waits for the answer to the cancellation.
    """
    with (
        suppress(OSError, OperationalError),  # it has ended already
        socket.socket(fileno=os.dup(connection.pgconn.socket)) as line,
    ):
        line.shutdown(socket.SHUT_RDWR)


@contextmanager
def answered_within(seconds: float, overdue: Callable[[], object]) -> Generator[None]:
    """Call `overdue` in the event loop if the block takes longer than that."""
    timer = asyncio.get_running_loop().call_later(seconds, overdue)
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def answered_within_in_thread(seconds: float, overdue: Callable[[], object]) -> Generator[None]:
    """Call `overdue` in a thread if the block takes longer than that."""
    timer = threading.Timer(seconds, overdue)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
