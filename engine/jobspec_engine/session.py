"""A shorter way than a cursor's to execute statements on a connection of our own.

A cursor serves any program. This executes nothing but our statements, one at a time: so a small one
takes half the time.
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from psycopg import Error, OperationalError
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import (
    FeatureNotSupported,
    InvalidSqlStatementName,
    ReadOnlySqlTransaction,
    error_from_result,
)
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import DiagnosticField, ExecStatus, Format, TransactionStatus

from jobspec_engine.lengths import write_lengths

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from psycopg import BaseConnection
    from psycopg.pq.abc import PGresult

Row = TypeVar("Row")


class Session:
    """Executes statements on a connection, and keeps what serves the next one as well.

    That is how values of each type are written and read, and which statements are prepared: a
    statement is another one where its parameters are of other types.
    """

    def __init__(self, connection: BaseConnection[Any]) -> None:
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
        except ReadOnlySqlTransaction:
            pgconn.finish()  # it may be told so for as long as it lasts, and another one not
            raise
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
