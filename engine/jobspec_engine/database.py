"""How the engine connects: a dead peer is noticed in seconds, and a pooler may be between."""

from __future__ import annotations

import asyncio
import os
import random
import select
import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from psycopg import OperationalError, ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import (
    AdminShutdown,
    CannotConnectNow,
    ConnectionException,
    ConnectionFailure,
    CrashShutdown,
    DeadlockDetected,
    IdleInTransactionSessionTimeout,
    ProgramLimitExceeded,
    ProtocolViolation,
    ReadOnlySqlTransaction,
    SerializationFailure,
    StatementTooComplex,
    TooManyArguments,
    TooManyColumns,
)

from jobspec_engine.errors import DsnError, UnreachableError
from jobspec_engine.session import is_outdated

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from psycopg import AsyncConnection, BaseConnection, Connection, Error

# libpq's names and units: seconds, but milliseconds for tcp_user_timeout.
_DEFAULTS: dict[str, str | int] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}

# Events and errors hold any character. A role or a database may say that sessions write in another
# encoding, which lacks most of them.
_OURS: dict[str, str | int | bool] = {"autocommit": True, "client_encoding": "utf8"}

# What a database raises that is away: for now, or until its standby has taken over.
_AWAY = (OperationalError, IdleInTransactionSessionTimeout, ReadOnlySqlTransaction)

# What it raises of a statement that is too much for it, now and every time.
_TOO_MUCH = (ProgramLimitExceeded, StatementTooComplex, TooManyArguments, TooManyColumns)

# What it raises of a transaction that another one kept from going on, and that it has undone.
_UNDONE = (DeadlockDetected, SerializationFailure)

# What it raises when it ends the line; a line that ends without a word has no SQLSTATE.
_LOST = (
    AdminShutdown,
    CannotConnectNow,
    ConnectionException,
    ConnectionFailure,
    CrashShutdown,
    ProtocolViolation,  # PgBouncer's word for it
    ReadOnlySqlTransaction,
)

# How often a transaction is tried, and seconds between two tries at the most.
_TRIES = 10
_LONGEST_PAUSE = 5.0

# For a session that a connection has for itself, which is told by its id: a pooler's is of its own.
#
# Statements are written for `read committed`: by the others whoever waited for a row would begin
# again, a renewal of leases too, and who waits for an event could be missed by its send.
#
# They are few and come again and again, and each reads some rows by an index. So the server keeps
# one plan of each, made when it is prepared: it would plan each claim anew, which takes it six
# times as long as to find nothing. What it knew of the tables then must not matter, such as that
# they were empty.
_SET_UP = """
    select
        pg_catalog.set_config('default_transaction_isolation', 'read committed', false),
        pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false),
        pg_catalog.set_config('enable_seqscan', 'off', false),
        pg_catalog.set_config('jit', 'off', false)
    where pg_catalog.pg_backend_pid() = %s
"""

# How often a statement is used before it is prepared, which takes a way there and back: many a
# client sends once.
_USES_BEFORE_PREPARED = 2

_UNREADABLE = (
    "it can't be read; write postgresql://user:password@host:5432/database, and characters of the"
    " password such as @ : / ? % as %40 %3A %2F %3F %25"
)


def checked_dsn(dsn: str) -> str:
    """Return an address that can be read. Raises `DsnError` for another, which tells none of it.

    libpq would tell: an unescaped `@` or `/` makes the rest of a password a host or a port.
    """
    if not _is_readable(dsn):
        raise DsnError(f"the address of the database: {_UNREADABLE}")
    return dsn


def _is_readable(dsn: str) -> bool:
    try:
        settings = conninfo_to_dict(dsn)
    except ProgrammingError:
        return False
    ports = str(settings.get("port") or "").split(",")
    return "@" not in str(settings.get("host") or "")[1:] and all(
        not port or (port.isascii() and port.isdigit()) for port in ports
    )


def connection_settings(dsn: str, application_name: str) -> dict[str, str | int | bool]:
    """Return what to connect with beside `dsn`, whose own settings win but for the encoding.

    Raises `DsnError` for a DSN that can't be read.
    """
    given = conninfo_to_dict(checked_dsn(dsn))
    defaults = {**_DEFAULTS, "application_name": application_name}
    return _OURS | {k: v for k, v in defaults.items() if k not in given}


def is_away(error: BaseException) -> bool:
    """Tell whether an error is of a database that can't be reached or used for now."""
    if isinstance(error, _AWAY):
        return not isinstance(error, _TOO_MUCH)
    return is_outdated(error)


def is_ended(connection: BaseConnection[Any]) -> bool:
    """Tell whether an idle connection was ended from the other side, without a way there and back.

    What was lost can't all be tried again: what adds a run may have added it. A line that its
    server or a pooler ended before anything was asked has something to read. So has one with a
    notice that nobody asked for, such as hardly comes; that one is no loss either.
    """
    if connection.closed:
        return True
    line = select.poll()
    line.register(connection.fileno(), select.POLLIN)
    return bool(line.poll(0))


def set_up_session(connection: Connection[Any]) -> bool:
    """Have the session of a connection suit our statements; tell whether a pooler is between.

    A direct one has each statement see what is committed, whatever its role or database says, and
    planned once. A pooler such as PgBouncer may have each transaction answered by another session,
    which does not know what was prepared: so nothing is.
    """
    session = connection.execute(_SET_UP, [connection.info.backend_pid]).fetchone()
    return _prepare_unless_pooled(connection, session)


async def set_up_session_async(connection: AsyncConnection[Any]) -> bool:
    """Have the session of a connection suit our statements. As `set_up_session`."""
    cursor = await connection.execute(_SET_UP, [connection.info.backend_pid])
    return _prepare_unless_pooled(connection, await cursor.fetchone())


def _prepare_unless_pooled(connection: BaseConnection[Any], session: object) -> bool:
    """Have statements prepared where the session was set up; tell whether it is a pooler's."""
    pooled = session is None
    connection.prepare_threshold = None if pooled else _USES_BEFORE_PREPARED
    return pooled


def pause_before_again(error: Error, tries: int, *, harmless: bool) -> float:
    """Return for how many seconds to wait until a transaction of ours is tried again.

    Raises the error where that is of no use: after ten tries, and unless the transaction was
    undone by one that it met or for a statement that is no longer prepared, or the line was lost
    and what may have been committed can be executed again without harm.
    """
    lost = harmless and _is_lost(error)
    if tries == _TRIES or not (lost or isinstance(error, _UNDONE) or is_outdated(error)):
        raise error
    return random.uniform(0, min(_LONGEST_PAUSE, 0.05 * 2**tries))  # noqa: S311  no secret


def _is_lost(error: Error) -> bool:
    """Tell whether a line was lost, alone or with its server; not whether none was to be had."""
    if isinstance(error, UnreachableError):
        return False
    return isinstance(error, _LOST) or (isinstance(error, OperationalError) and not error.sqlstate)


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
