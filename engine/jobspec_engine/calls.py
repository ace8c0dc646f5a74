"""Calls of statements, and how they are executed, by sync and by async code alike.

A `Call` says what to execute and what its rows are. Some that belong together are a generator,
which yields each and is sent its rows; so what is decided between them is written once, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from psycopg import AsyncConnection, AsyncRawCursor, Connection, RawCursor
from psycopg.pq import PipelineStatus
from psycopg.rows import tuple_row

from jobspec_engine.lengths import write_lengths
from jobspec_engine.own_connections import OwnAsyncConnection, OwnConnection

if TYPE_CHECKING:
    from psycopg import BaseConnection

Row = TypeVar("Row")
Result = TypeVar("Result")

# A few calls that belong together, each decided by the rows of those before.
Calls = Generator["Call[Any]", list[Any], Result]

# About how many characters of data one statement carries, where it could carry more: Postgres takes
# none of a gigabyte.
MOST_CHARACTERS = 32 << 20


@dataclass(frozen=True, slots=True)
class Call(Generic[Row]):
    """A statement with its parameters; `row` makes a typed row of what comes back."""

    query: bytes
    params: Mapping[str, object]
    row: Callable[[Sequence[Any]], Row]
    # What to do while the database is at it.
    meanwhile: Callable[[], object] | None = None

    def begun(self) -> None:
        """Do what there is to do while the database is at it."""
        if self.meanwhile is not None:
            self.meanwhile()


def fetch(connection: Connection[Any], call: Call[Row]) -> list[Row]:
    """Execute a statement and return its rows, whatever factories the connection has.

    They come in Postgres's binary format. As text, times are written as the session's `DateStyle`
    and `IntervalStyle` say, and psycopg reads the usual one only.
    """
    query, params = _as_sent(call)
    if isinstance(connection, OwnConnection):
        rows = connection.session.executing(query, params, call.row, call.meanwhile)
        return connection.wait(rows)
    with RawCursor(connection, row_factory=tuple_row) as cursor:
        write_lengths(cursor.adapters)
        if _waits(connection, call):
            cursor.execute(query, params, binary=True)
        else:
            with connection.pipeline():
                cursor.execute(query, params, binary=True)
                call.begun()
        return [call.row(row) for row in cursor] if _has_rows(cursor) else []


async def fetch_async(connection: AsyncConnection[Any], call: Call[Row]) -> list[Row]:
    """Execute a statement and return its rows. As `fetch`."""
    query, params = _as_sent(call)
    if isinstance(connection, OwnAsyncConnection):
        rows = connection.session.executing(query, params, call.row, call.meanwhile)
        return await connection.wait(rows)
    async with AsyncRawCursor(connection, row_factory=tuple_row) as cursor:
        write_lengths(cursor.adapters)
        if _waits(connection, call):
            await cursor.execute(query, params, binary=True)
        else:
            async with connection.pipeline():
                await cursor.execute(query, params, binary=True)
                call.begun()
        return [call.row(row) for row in await cursor.fetchall()] if _has_rows(cursor) else []


def _waits(connection: BaseConnection[Any], call: Call[Any]) -> bool:
    """Tell whether to execute a statement and wait for its rows at once.

    In a pipeline, such as the caller's, they come when that, or one within it, is at its end.
    """
    return call.meanwhile is None and connection.pgconn.pipeline_status == PipelineStatus.OFF


def _has_rows(cursor: RawCursor[Any] | AsyncRawCursor[Any]) -> bool:
    """Tell whether a statement returns rows. `description` would describe each of their columns."""
    return cursor.rownumber is not None


def _as_sent(call: Call[Any]) -> tuple[bytes, list[object]]:
    query, names = numbered(call.query)
    return query, [call.params[name] for name in names]


@cache
def numbered(query: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return a query with its parameters numbered, as Postgres takes it, and their names.

    psycopg would do so each time with a query as long as some of ours.
    """
    numbers: dict[bytes, int] = {}
    rewritten = re.sub(
        rb"%\((\w+)\)s",
        lambda found: b"$%d" % numbers.setdefault(found[1], len(numbers) + 1),
        query,
    )
    return rewritten.replace(b"%%", b"%"), tuple(name.decode() for name in numbers)


def drive(connection: Connection[Any], calls: Calls[Result]) -> Result:
    """Execute what a generator yields, send it the rows, and return its result."""
    try:
        call = next(calls)
        while True:
            call = calls.send(fetch(connection, call))
    except StopIteration as finished:
        result: Result = finished.value
        return result


async def drive_async(connection: AsyncConnection[Any], calls: Calls[Result]) -> Result:
    """Execute what a generator yields, send it the rows, and return its result."""
    try:
        call = next(calls)
        while True:
            call = calls.send(await fetch_async(connection, call))
    except StopIteration as finished:
        result: Result = finished.value
        return result


def only(call: Call[Row]) -> Calls[list[Row]]:
    """Execute one statement, where a few could be; return its rows."""
    rows: list[Row] = yield call
    return rows


class Begun(Generic[Result]):
    """A few calls, the first of which is made at once, with its parameters, not when it is due."""

    def __init__(self, calls: Calls[Result]) -> None:
        self._first = next(calls)
        self._rest = calls

    def beside(self, meanwhile: Callable[[], object]) -> Calls[Result]:
        """Go on, and do something else while the database is at the first statement."""
        try:
            call = replace(self._first, meanwhile=meanwhile)
            while True:
                call = self._rest.send((yield call))
        except StopIteration as finished:
            result: Result = finished.value
            return result


def first(row: Sequence[Any]) -> Any:
    """Return the only column of a row, for statements that have one."""
    return row[0]
