"""Drift: how the schema that is there differs from the one that the migrations make.

What they make is found out, not written down: a second schema is migrated in the same database, in
a transaction that is rolled back, and both are read from the catalogue in the same way. So there is
no snapshot to keep, and every supported Postgres prints both sides alike. The price is that one
must be allowed to create a schema, as for migrating.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg import sql
from psycopg.rows import dict_row

from jobspec_engine.access import grant, granted
from jobspec_engine.migrate import (
    DEFAULT_SCHEMA,
    SHIPPED,
    check_schema_name,
    connected,
    migrate,
    pending,
)

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import psycopg


@dataclass(frozen=True)
class Difference:
    """One object that is missing, extra or otherwise than the migrations make it.

    Attributes:
        kind: `table`, `column`, `constraint`, `index`, `function` and so on, or `migration` for
            one that is not applied yet.
        name: the name in its schema, such as `job_queue.state` for a column.
        expected: its definition by the migrations; none where they make no such object.
        found: its definition in the database; none where it is missing.

    """

    kind: str
    name: str
    expected: str | None
    found: str | None

    def __str__(self) -> str:
        """Return the difference as one line for people."""
        if self.found is None:
            return f"{self.kind} {self.name} is missing: expected `{_one_line(self.expected)}`"
        if self.expected is None:
            return f"{self.kind} {self.name} is not of the migrations: `{_one_line(self.found)}`"
        return (
            f"{self.kind} {self.name} differs: expected `{_one_line(self.expected)}`,"
            f" found `{_one_line(self.found)}`"
        )


def drift(
    database: str | psycopg.Connection[Any],
    schema: str = DEFAULT_SCHEMA,
    folder: Traversable = SHIPPED,
) -> tuple[Difference, ...]:
    """Return how the schema differs from what the migrations make: nothing where it does not.

    Nothing is changed, though the role must be allowed to create a schema. Owners, comments and the
    order of columns are not compared; privileges are, of the schema's own roles once they have any.

    Args:
        database: where: a conninfo or `postgresql://` string, or a connection.
        schema: the schema to look at.
        folder: where the migrations are; by default those shipped with the engine.

    Raises:
        MigrationError: an applied migration was changed, or the schema is newer than this code.
        psycopg.Error: the database can not be reached, or refuses the second schema.

    """
    check_schema_name(schema)
    scratch = f"jobspec_drift_{secrets.token_hex(8)}"
    with connected(database) as connection, connection.transaction(force_rollback=True):
        missing = pending(connection, schema, folder)
        migrate(connection, scratch, folder)
        roles = granted(connection, schema)
        if roles:
            grant(connection, scratch, like=schema)
        expected, found = (_objects(connection, one, roles) for one in (scratch, schema))
    unapplied = tuple(Difference("migration", str(step), "applied", None) for step in missing)
    return unapplied + _differences(expected, found)


@dataclass(frozen=True)
class _Object:
    part_of: str | None
    definition: str


_Objects = Mapping[tuple[str, str], _Object]


def _objects(connection: psycopg.Connection[Any], schema: str, roles: Sequence[str]) -> _Objects:
    """Return every object of a schema by kind and name, without the schema's name in them."""
    quoted = sql.Identifier(schema).as_string()
    connection.execute(
        "select pg_catalog.set_config('search_path', %s, true),"
        " pg_catalog.set_config('quote_all_identifiers', 'off', true)",
        [f"{quoted}, pg_catalog"],
    )
    query = (SHIPPED / "catalog.sql").read_bytes()
    with connection.cursor(row_factory=dict_row) as cursor:
        return {
            (row["kind"], row["name"].replace(f"{quoted}.", "")): _Object(
                row["part_of"], row["definition"].replace(f"{quoted}.", "")
            )
            for row in cursor.execute(query, {"schema": schema, "roles": list(roles)})
        }


def _differences(expected: _Objects, found: _Objects) -> tuple[Difference, ...]:
    return tuple(
        Difference(*key, _definition(expected, key), _definition(found, key))
        for key in sorted(expected.keys() | found.keys())
        if expected.get(key) != found.get(key)
        and not (_owner_differs(expected, found, key) or _owner_differs(found, expected, key))
    )


def _definition(objects: _Objects, key: tuple[str, str]) -> str | None:
    return objects[key].definition if key in objects else None


def _owner_differs(one: _Objects, other: _Objects, key: tuple[str, str]) -> bool:
    """Tell whether the object belongs to a table of the one side only: then that says it all."""
    if key not in one or key in other:
        return False
    owner = one[key].part_of
    return owner is not None and ("table", owner) in one and ("table", owner) not in other


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())
