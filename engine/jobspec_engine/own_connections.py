"""Connections of our own, and a shorter way to execute statements on them than a cursor's.

A cursor serves any program. These execute nothing but our statements, one at a time, and nobody
else makes the session forget what was prepared: so a small statement takes half the time.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from psycopg import AsyncConnection, Connection, OperationalError
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute, fetch_many, send
from psycopg.pq import DiagnosticField, ExecStatus, Format

from jobspec_engine.lengths import write_lengths

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from psycopg.pq.abc import PGresult

Row = TypeVar("Row")


class OwnConnection(Connection[Any]):
    """A connection that only we execute statements on."""

    @cached_property
    def session(self) -> Session:
        """How it executes statements."""
        return Session(self)


class OwnAsyncConnection(AsyncConnection[Any]):
    """A connection that only we execute statements on."""

    @cached_property
    def session(self) -> Session:
        """How it executes statements."""
        return Session(self)


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
        result = _require_done(results)
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
        name = b"jobspec_%d" % len(self._names)
        pgconn = self._connection.pgconn
        pgconn.send_prepare(name, query, param_types=types)
        _require_done((yield from execute(pgconn)))
        self._names[statement] = name
        return name


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
