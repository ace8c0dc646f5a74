"""Migrations: numbered SQL files that make the schema, applied in order, never edited.

A file is plain SQL. `{schema}` stands for the schema's name and becomes a quoted identifier; every
other brace means itself. `{schema}` may not stand inside a quoted string. Every name is qualified,
so that nobody's `search_path` matters.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import re
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt
from tenacity.wait import wait_random

from jobspec_engine.database import checked_dsn
from jobspec_engine.errors import EditedMigrationError, MigrationError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from importlib.resources.abc import Traversable

DEFAULT_SCHEMA = "jobspec"
SHIPPED = importlib.resources.files("jobspec_engine") / "migrations"
NAME_LIMIT = 56  # bytes: Postgres has 63 for the name of a role, `<schema>_worker`

# For how many milliseconds a migration waits for a table: whoever comes after it waits as long.
# That is over before Postgres looks for deadlocks, after a second: who holds the one of two tables
# may want the other.
_LOCK_PATIENCE = 500

# How often it is tried then, and the mean of the seconds in between.
_TRIES, _PAUSE = 40, 1.0

_FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


class GaveWayError(MigrationError):
    """A migration let those pass who wait behind it for a table."""


@dataclass(frozen=True)
class Migration:
    """One numbered file."""

    version: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the file's text, the same for every schema name."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.version:04}_{self.name}"


@dataclass(frozen=True)
class Applied:
    """One row of the table `migration`."""

    version: int
    name: str
    digest: str
    applied_at: datetime

    def __str__(self) -> str:
        return f"{self.version:04}_{self.name}"


def migrate(
    database: str | psycopg.Connection[Any],
    schema: str = DEFAULT_SCHEMA,
    folder: Traversable = SHIPPED,
) -> tuple[Applied, ...]:
    """Bring the schema up to date and return what was applied: nothing where nothing was pending.

    Each migration is one transaction under a lock, so any number of processes may migrate at once
    and one that is killed leaves nothing half done. On a connection that is inside a transaction
    all of it becomes part of that transaction.

    Senders and workers may be at work. What they do waits until a migration is committed; while
    that waits for them, they would wait behind it, so it gives way after half a second and tries
    again.

    Args:
        database: where: a conninfo or `postgresql://` string, or a connection.
        schema: the schema to make or to bring up to date.
        folder: where the migrations are; by default those shipped with the engine.

    Raises:
        MigrationError: an applied migration was changed, the schema is newer than this code, its
            name is not usable, a migration failed, somebody held a table for a minute, or the
            database is not in UTF-8.
        psycopg.Error: the database can not be reached.

    """
    check_schema_name(schema)
    migrations = read_migrations(folder)
    applied: list[Applied] = []
    with connected(database) as connection:
        try_ = giving_way(connection)
        while step := try_(_apply_next, connection, schema, migrations):
            applied.append(step)
    return tuple(applied)


def pending(
    database: str | psycopg.Connection[Any],
    schema: str = DEFAULT_SCHEMA,
    folder: Traversable = SHIPPED,
) -> tuple[Migration, ...]:
    """Return the migrations that `migrate` would apply, and change nothing; arguments as there.

    Raises:
        MigrationError: an applied migration was changed, the schema is newer than this code, or its
            name is not usable.
        psycopg.Error: the database can not be reached.

    """
    check_schema_name(schema)
    migrations = read_migrations(folder)
    with connected(database) as connection, connection.transaction():
        return _pending(connection, schema, migrations)


def render(text: str, schema: str) -> bytes:
    """Return the SQL text with every `{schema}` as the quoted identifier of the schema."""
    return text.replace("{schema}", sql.Identifier(schema).as_string()).encode()


def check_schema_name(schema: str) -> None:
    """Raise `MigrationError` unless Postgres and every migration can take the name."""
    if fault := _name_fault(schema):
        raise MigrationError(f"{schema!r} can not be the name of a schema: {fault}")


def _name_fault(schema: str) -> str | None:
    if not schema:
        return "it is empty"
    if not schema.isprintable():
        return "it holds a character that can not be printed"
    if len(schema.encode()) > NAME_LIMIT:
        return f"it is longer than {NAME_LIMIT} bytes"
    if schema.startswith("pg_"):
        return "Postgres keeps names that start with `pg_` for itself"
    if "$" in schema:
        return "a `$` could end the body of a function that names the schema"
    if "%" in schema:
        return "a `%` could be taken for a parameter of a statement that names the schema"
    return None


def read_migrations(folder: Traversable) -> tuple[Migration, ...]:
    """Return the migrations of a folder by version, which must be 1, 2, 3 and so on."""
    found = sorted(
        (
            Migration(int(match[1]), match[2], file.read_text(encoding="utf-8"))
            for file in folder.iterdir()
            if (match := _FILE_NAME.fullmatch(file.name))
        ),
        key=lambda migration: migration.version,
    )
    for expected, migration in enumerate(found, start=1):
        if migration.version != expected:
            raise MigrationError(f"migration {migration} should have the number {expected:04}")
    return tuple(found)


def connected(
    database: str | psycopg.Connection[Any],
) -> AbstractContextManager[psycopg.Connection[Any]]:
    """Return a connection to use in a `with`: a new one that it closes, or the given one."""
    if isinstance(database, str):
        return psycopg.connect(checked_dsn(database), autocommit=True, client_encoding="utf8")
    return nullcontext(database)


def giving_way(connection: psycopg.Connection[Any]) -> Retrying:
    """Return what tries a migration again that gave way; not in the transaction of the caller."""
    if not _is_ours(connection):
        return Retrying(stop=stop_after_attempt(1), reraise=True)
    return Retrying(
        retry=retry_if_exception_type(GaveWayError),
        stop=stop_after_attempt(_TRIES),
        wait=wait_random(max=2 * _PAUSE),
        reraise=True,
    )


def _is_ours(connection: psycopg.Connection[Any]) -> bool:
    return connection.info.transaction_status == TransactionStatus.IDLE


def _apply_next(
    connection: psycopg.Connection[Any], schema: str, migrations: Sequence[Migration]
) -> Applied | None:
    with alone(connection, schema):
        _bootstrap(connection, schema)
        steps = _pending(connection, schema, migrations)
        return _apply(connection, schema, steps[0]) if steps else None


@contextmanager
def alone(connection: psycopg.Connection[Any], schema: str) -> Generator[None]:
    """Be the only one who changes the schema, in a transaction that does not wait long for tables.

    The lock ends with a killed process, too: others wait and then find what was done. In the
    transaction of a caller it waits as that does. Raises `GaveWayError` where a table is held.
    """
    ours = _is_ours(connection)
    try:
        with connection.transaction():
            digest = hashlib.sha256(f"jobspec migrate {schema}".encode()).digest()
            key = int.from_bytes(digest[:8], signed=True)
            connection.execute("select pg_catalog.pg_advisory_xact_lock(%s)", [key])
            if ours:
                set_patience = "select pg_catalog.set_config('lock_timeout', %s, true)"
                connection.execute(set_patience, [str(_LOCK_PATIENCE)])
            yield
    except psycopg.errors.LockNotAvailable as error:
        raise GaveWayError(
            f"nothing was changed: a transaction holds the tables of schema `{schema}` and does not"
            " end; `jobspec doctor` names those that are open for long"
        ) from error


def _bootstrap(connection: psycopg.Connection[Any], schema: str) -> None:
    """Make the schema and its table `migration`, each only where missing.

    `create ... if not exists` would ask for the right to create even where all is there.
    """
    if _exists(connection, "select from pg_catalog.pg_namespace where nspname = %s", [schema]):
        if _has_migration_table(connection, schema):
            return
    else:
        _require_unicode(connection)
        connection.execute(render("create schema {schema}", schema))
    text = (SHIPPED / "bootstrap.sql").read_text(encoding="utf-8")
    connection.execute(render(text, schema))


def _require_unicode(connection: psycopg.Connection[Any]) -> None:
    """Refuse a database that lacks most characters: an event that has one would fail its sender."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise MigrationError(
            f"this database keeps text as {encoding}, and events may hold any character: name"
            " one that was made by `create database ... encoding 'UTF8' template template0`"
        )


def _has_migration_table(connection: psycopg.Connection[Any], schema: str) -> bool:
    return _exists(
        connection,
        "select from pg_catalog.pg_tables where schemaname = %s and tablename = 'migration'",
        [schema],
    )


def _exists(connection: psycopg.Connection[Any], query: str, values: list[str]) -> bool:
    return connection.execute(query.encode(), values).fetchone() is not None


def _pending(
    connection: psycopg.Connection[Any], schema: str, migrations: Sequence[Migration]
) -> tuple[Migration, ...]:
    applied = _applied(connection, schema) if _has_migration_table(connection, schema) else []
    if len(applied) > len(migrations):
        raise MigrationError(
            f"schema `{schema}` is newer than this code: it is at {applied[-1]}, and this code"
            f" knows {len(migrations)} migrations; upgrade jobspec-kit"
        )
    for row, migration in zip(applied, migrations, strict=False):
        if (row.version, row.digest) != (migration.version, migration.digest):
            raise EditedMigrationError(
                f"migration {migration} is not what was applied to schema `{schema}` as {row}: this"
                " database was migrated by another build of jobspec. Use that build; for a database"
                f" to throw away, drop the schema. In jobspec's own code, put {migration} back and"
                " add a new migration"
            )
    return tuple(migrations[len(applied) :])


def _applied(connection: psycopg.Connection[Any], schema: str) -> list[Applied]:
    query = "select version, name, digest, applied_at from {schema}.migration order by version"
    with connection.cursor(row_factory=class_row(Applied)) as cursor:
        return cursor.execute(render(query, schema), binary=True).fetchall()


def _apply(connection: psycopg.Connection[Any], schema: str, migration: Migration) -> Applied:
    insert = (
        "insert into {schema}.migration (version, name, digest) values (%s, %s, %s)"
        " returning version, name, digest, applied_at"
    )
    values = [migration.version, migration.name, migration.digest]
    with connection.cursor(row_factory=class_row(Applied)) as cursor:
        # The row comes first: were there no lock, the second of two would wait here, and fail.
        row = cursor.execute(render(insert, schema), values, binary=True).fetchone()
    try:
        connection.execute(render(migration.text, schema))
    except psycopg.errors.LockNotAvailable:
        raise
    except psycopg.Error as error:
        raise MigrationError(f"migration {migration} failed: {error}") from error
    if row is None:
        raise MigrationError(f"migration {migration} left no row")
    return row
