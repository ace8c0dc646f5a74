"""Throw-away servers and databases, and the clock of one of them."""

from __future__ import annotations

import secrets
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobspec_engine.embedded import EmbeddedPostgres

if TYPE_CHECKING:
    import os
    from collections.abc import Generator
    from types import TracebackType

# Nothing of a throw-away server outlives it, so nothing needs to reach the disk.
_THROW_AWAY = {"fsync": "off", "full_page_writes": "off", "max_connections": "200"}

# All that a test can have changed in a database and emptying its tables does not change back.
_SHAPE = """
    select md5(string_agg(line, ';' order by line)) from (
        select nspname::text from pg_namespace
        union all
        select concat_ws(' ', attrelid::regclass, relkind, reloptions, attnum, attname,
            format_type(atttypid, atttypmod), attnotnull, attidentity, pg_get_expr(adbin, adrelid))
        from pg_attribute
        join pg_class on pg_class.oid = attrelid
        left join pg_attrdef on adrelid = attrelid and adnum = attnum
        where attrelid >= 16384 and relkind <> 't'
        union all
        select concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid))
        from pg_constraint where oid >= 16384
        union all
        select pg_get_indexdef(indexrelid) from pg_index where indrelid >= 16384
        union all
        select pg_get_functiondef(oid) from pg_proc where oid >= 16384 and prokind in ('f', 'p')
        union all
        select pg_get_triggerdef(oid) from pg_trigger where oid >= 16384 and not tgisinternal
        union all
        select typname from pg_type where oid >= 16384 and typtype <> 'b'
        union all
        select setconfig::text from pg_db_role_setting
    ) as lines (line)
"""

_EMPTY = """
    select string_agg(format('%I.%I', schemaname, tablename), ', ') from pg_tables
    where schemaname = 'jobspec' and tablename <> 'migration'
"""

_END_OTHERS = """
    select pg_terminate_backend(pid, 10000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
"""


@contextmanager
def throw_away_server(bin_dir: str | os.PathLike[str] | None = None) -> Generator[str]:
    """Start a bundled Postgres in a temporary folder, and give its address.

    `bin_dir` names the folder of another server's programs. Raises `EmbeddedPostgresError`.
    """
    with tempfile.TemporaryDirectory(prefix="jobspec-tests-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        with EmbeddedPostgres(folder, _THROW_AWAY, bin_dir) as server:
            yield server.dsn


class Databases:
    """Makes databases on a server, and drops those still there on leaving."""

    def __init__(self, server_dsn: str) -> None:
        self._server_dsn = server_dsn
        self._names: list[str] = []
        self._shapes: dict[str, Any] = {}
        self._idle: list[tuple[str, str]] = []

    def __enter__(self) -> Self:
        self._connection = psycopg.connect(self._server_dsn, autocommit=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in list(self._names):
            self.drop(name)
        self._connection.close()

    def create(self, template: str = "template0") -> tuple[str, str]:
        """Return the name and the address of a new database."""
        name = f"jobspec_test_{secrets.token_hex(6)}"
        self._run("create database {} template {}", name, template)
        self._names.append(name)
        settings = conninfo_to_dict(self._server_dsn)
        settings["dbname"] = name
        return name, make_conninfo("", **settings)

    def drop(self, name: str) -> None:
        """Drop a database, whoever is still connected to it."""
        self._run("drop database {} with (force)", name)
        self._names.remove(name)

    @contextmanager
    def borrowed(self, template: str) -> Generator[str]:
        """Give the address of a copy of a database, which goes to the next borrower when emptied.

        A copy takes a quarter of a second to make. One that is changed in more than its rows is
        dropped.
        """
        name, dsn = self._idle.pop() if self._idle else self.create(template)
        if template not in self._shapes:
            with psycopg.connect(dsn) as connection:
                self._shapes[template] = connection.execute(_SHAPE).fetchone()
        yield dsn
        if _emptied(dsn, self._shapes[template]):
            self._idle.append((name, dsn))
        else:
            self.drop(name)

    def _run(self, query: LiteralString, *names: str) -> None:
        self._connection.execute(sql.SQL(query).format(*map(sql.Identifier, names)))


def _emptied(dsn: str, shape: object) -> bool:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_END_OTHERS)
        if connection.execute(_SHAPE).fetchone() != shape:
            return False
        (tables,) = connection.execute(_EMPTY).fetchone() or ("",)
        connection.execute(f"truncate {tables} restart identity".encode())
        return True


class Clock:
    """The time of all sessions of one throw-away database, which stands still until it is moved.

    It replaces the schema's function `now()` by one that reads a table. Every move is committed at
    once; a statement that has begun keeps its time. `set jobspec.now` still wins in its session.
    """

    START = datetime(2026, 1, 1, tzinfo=UTC)

    def __init__(self, dsn: str, schema: str = "jobspec") -> None:
        self._dsn = dsn
        self._schema = sql.Identifier(schema)

    def __enter__(self) -> Self:
        self._connection = psycopg.connect(self._dsn, autocommit=True)
        (self._real,) = self._row(
            "select pg_get_functiondef(%s::regprocedure)", f"{self._schema.as_string()}.now()"
        )
        self._connection.execute("create schema jobspec_testing")
        self._connection.execute("create table jobspec_testing.clock (at timestamptz not null)")
        self._connection.execute("insert into jobspec_testing.clock values (%s)", [self.START])
        self._connection.execute(
            sql.SQL(
                "create or replace function {}.now() returns timestamptz"
                " language sql stable parallel safe return coalesce("
                " nullif(current_setting('jobspec.now', true), '')::timestamptz,"
                " (select at from jobspec_testing.clock))"
            ).format(self._schema)
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.execute(self._real)
        self._connection.execute("drop schema jobspec_testing cascade")
        self._connection.close()

    def now(self) -> datetime:
        """Return the time the database has now."""
        now: datetime = self._row("select at from jobspec_testing.clock")[0]
        return now

    def set(self, at: datetime) -> None:
        """Make it this time, an aware datetime."""
        self._connection.execute("update jobspec_testing.clock set at = %s", [at])

    def advance(self, by: timedelta | float) -> datetime:
        """Move the time on by a timedelta or a number of seconds, and return the new time."""
        delta = by if isinstance(by, timedelta) else timedelta(seconds=by)
        moved: datetime = self._row(
            "update jobspec_testing.clock set at = at + %s returning at", delta
        )[0]
        return moved

    def _row(self, query: LiteralString, *params: object) -> Any:
        return self._connection.execute(query, params).fetchone()
