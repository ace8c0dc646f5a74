"""Connections of our own, and a shorter way to execute statements on them than a cursor's.

A cursor serves any program. These execute nothing but our statements, one at a time: so a small
one takes half the time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from psycopg import AsyncConnection, Connection, Error, OperationalError
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import (
    FeatureNotSupported,
    InvalidSqlStatementName,
    QueryCanceled,
    error_from_result,
)
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import DiagnosticField, ExecStatus, Format, TransactionStatus
from psycopg.waiting import Ready, Wait

from jobspec_engine.lengths import write_lengths

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGresult

Row = TypeVar("Row")
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
        return _Line(self)

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


class _Line:
    """The line of a connection, on which the event loop has one reader for all answers.

    The loop must not have it any more when the line is closed, which libpq does as well when it
    breaks: another line that gets its number could not be read. So the reader goes at each error,
    and when something comes that nobody waits for.
    """

    def __init__(self, connection: OwnAsyncConnection) -> None:
        self._connection = connection
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
            self._loop, self._number = loop, self._connection.pgconn.socket
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


class Session:
    """Executes statements on a connection, and keeps what serves the next one as well.

    That is how values of each type are written and read, and which statements are prepared: a
    statement is another one where its parameters are of other types.
    """

    def __init__(self, connection: OwnConnection | OwnAsyncConnection) -> None:
        self._connection = connection
        write_lengths(connection.adapters)
        self._transformer = Transformer(connection)
        self._uses: Counter[tuple[bytes, tuple[int, ...]]] = Counter()
        self._names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._numbers = count()  # of names: the session may still have one that is forgotten here

    def executing(
        self,
        query: bytes,
        values: Sequence[object],
        row: Callable[[Sequence[Any]], Row],
        meanwhile: Callable[[], object] | None,
    ) -> Generator[Any, Any, list[Row]]:
        """Execute a statement and return its rows: what the connection's `wait` takes.

        Parameters are numbered; rows come in Postgres's binary format. `meanwhile` is called while
        the database is at it. Raises `psycopg.Error`.
        """
        transformer, pgconn = self._transformer, self._connection.pgconn
        params = transformer.dump_sequence(values, [PyFormat.AUTO] * len(values))
        types, formats = transformer.types or (), transformer.formats
        name = yield from self._prepared(query, types)
        if name is None:
            pgconn.send_query_params(query, params, types, formats, Format.BINARY)
        else:
            pgconn.send_query_prepared(name, params, formats, Format.BINARY)
        yield from send(pgconn)
        try:
            if meanwhile is not None:
                meanwhile()
        finally:  # the connection takes nothing else before
            results = yield from fetch_many(pgconn)
        try:
            result = _require_done(results)
        except Error as error:
            if not self._forgets(error):
                raise
            pgconn.send_query_params(query, params, types, formats, Format.BINARY)
            result = _require_done((yield from execute(pgconn)))
        transformer.set_pgresult(result)
        rows = transformer.load_rows(0, result.ntuples, row)
        transformer.set_pgresult(None)  # it may be large
        return rows

    def _prepared(self, query: bytes, types: tuple[int, ...]) -> Generator[Any, Any, bytes | None]:
        """Return by which name a statement is prepared; None: it is not.

        It is prepared once it was used `prepare_threshold` times, as a cursor does.
        """
        statement = query, types
        name = self._names.get(statement)
        threshold = self._connection.prepare_threshold
        if name is not None or threshold is None:
            return name
        self._uses[statement] += 1
        if self._uses[statement] <= threshold:
            return None
        name = b"jobspec_%d" % next(self._numbers)
        pgconn = self._connection.pgconn
        pgconn.send_prepare(name, query, param_types=types)
        _require_done((yield from execute(pgconn)))
        self._names[statement] = name
        return name

    def _forgets(self, error: Error) -> bool:
        """Forget what was prepared where an error says so; tell whether to execute anew at once.

        In a transaction that is of no use: it was undone, and whoever began it begins again.
        """
        if not is_outdated(error):
            return False
        self._names.clear()
        return self._connection.pgconn.transaction_status == TransactionStatus.IDLE


def _require_done(results: Sequence[PGresult]) -> PGresult:
    """Return the result. Raises what the database says of a statement that failed.

    A line that breaks when a statement is done is a result of its own, which libpq makes.
    """
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            if result.error_field(DiagnosticField.SQLSTATE) is None:
                raise OperationalError(result.get_error_message())
            raise error_from_result(result)
    return results[0]


def is_outdated(error: BaseException) -> bool:
    """Tell whether an error is of a prepared statement that the session does not have any more.

    Somebody had it forget all of them, or a migration changed the types of the rows. Either way
    nothing of it was executed. The words of the second are of any language, its place is not.
    """
    if isinstance(error, FeatureNotSupported):
        return error.diag.source_function == "RevalidateCachedQuery"
    return isinstance(error, InvalidSqlStatementName)
