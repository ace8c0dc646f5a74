"""Access: for each kind of user of a schema a group role, with the least that its work takes.

`migrations/access.sql` says what each may do, and docs/decisions/0010-roles.md why. Roles belong to
a whole cluster, so they bear the name of the schema. Who may make roles is seldom who migrates:
what can't be done here is said, with the SQL for somebody who can.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors, sql

from jobspec_engine.migrate import (
    DEFAULT_SCHEMA,
    SHIPPED,
    alone,
    check_schema_name,
    connected,
    giving_way,
    read_migrations,
    render,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KINDS = ("sender", "worker", "reader", "owner")

_MADE = re.compile(r"create (?:table|function) (\{schema\}\.\w+)")

_FOREIGN = "select rolname from pg_catalog.pg_roles where rolname = any(%s) and rolcanlogin"
_THERE = "select rolname from pg_catalog.pg_roles where rolname = any(%s)"

_ANY_GIVEN = """
    select
    from pg_catalog.pg_namespace
    cross join lateral pg_catalog.aclexplode(nspacl) as acl
    join pg_catalog.pg_roles on pg_roles.oid = acl.grantee
    where nspname = %s and rolname = any(%s)
    limit 1
"""

# Who owns the tables, if the caller has not the rights of that role: a grant by somebody else would
# only be warned of.
_OTHER_OWNER = """
    select tableowner
    from pg_catalog.pg_tables
    where schemaname = %s and tablename = 'migration'
        and not pg_catalog.pg_has_role(tableowner, 'usage')
"""


@dataclass(frozen=True, slots=True)
class Access:
    """What became of the roles of a schema.

    Attributes:
        made: the roles that were missing and were made.
        lacking: what could not be done, each with what to do about it.

    """

    made: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


def role_of(kind: str, schema: str) -> str:
    """Return the name of a schema's role of one of the `KINDS`."""
    return f"{schema}_{kind}"


def give_access(database: str | psycopg.Connection[Any], schema: str = DEFAULT_SCHEMA) -> Access:
    """Make the roles of a migrated schema where they are missing, and give them what they may do.

    Gives the tables and functions to the role of the owner, whose member the caller is made. May be
    repeated, and from several places at once. What the caller may not do is left, and said.

    Args:
        database: where: a conninfo or `postgresql://` string, or a connection.
        schema: a schema that is migrated.

    Raises:
        MigrationError: the schema's name is not usable, or somebody held a table for a minute.
        psycopg.Error: the database can not be reached.

    """
    check_schema_name(schema)
    with connected(database) as connection:
        return giving_way(connection)(_give_access, connection, schema)


def _give_access(connection: psycopg.Connection[Any], schema: str) -> Access:
    with alone(connection, schema):
        roles = [role_of(kind, schema) for kind in KINDS]
        if lacking := _unusable(connection, schema, roles):
            return Access(lacking=lacking)
        made = _make(connection, [one for one in roles if one not in _there(connection, roles)])
        if missing := [one for one in roles if one not in _there(connection, roles)]:
            return Access(made, (_unmade(connection, missing, roles[-1]),))
        return Access(made, tuple(_give(connection, schema)))


def grant(connection: psycopg.Connection[Any], schema: str, like: str) -> None:
    """Grant on `schema` to the roles of the schema `like` what each of them may do.

    Raises `psycopg.errors.InsufficientPrivilege` unless the caller may.
    """
    text = (SHIPPED / "access.sql").read_text(encoding="utf-8")
    for kind in KINDS:
        text = text.replace(f"{{{kind}}}", sql.Identifier(role_of(kind, like)).as_string())
    connection.execute(render(text, schema))


def granted(connection: psycopg.Connection[Any], schema: str) -> tuple[str, ...]:
    """Return the roles of a schema that are given something by `grant`; none where nobody is yet.

    Not the owner's, whose privileges are implied. The roles may be there for another database.
    """
    roles = [role_of(kind, schema) for kind in KINDS]
    given = connection.execute(_ANY_GIVEN, [schema, roles]).fetchone() is not None
    return tuple(roles[:-1]) if given and _there(connection, roles) == set(roles) else ()


def _unusable(
    connection: psycopg.Connection[Any], schema: str, roles: Sequence[str]
) -> tuple[str, ...]:
    if schema == "public":
        return ("schema public has no roles: it is everybody's; migrate one of the engine's own",)
    foreign = connection.execute(_FOREIGN, [list(roles)]).fetchall()
    return tuple(
        f"role {name} is given nothing: it can log in, and so is nobody's group; call either it or"
        " the schema something else"
        for (name,) in foreign
    )


def _there(connection: psycopg.Connection[Any], roles: Sequence[str]) -> set[str]:
    return {name for (name,) in connection.execute(_THERE, [list(roles)])}


def _make(connection: psycopg.Connection[Any], missing: Sequence[str]) -> tuple[str, ...]:
    """Make roles, and return those that this call made."""
    return tuple(one for one in missing if _made(connection, one))


def _made(connection: psycopg.Connection[Any], role: str) -> bool:
    try:
        with connection.transaction():
            connection.execute(sql.SQL("create role {} nologin").format(sql.Identifier(role)))
            if role.endswith("_owner"):
                # Who makes a role may give it to itself, and needs it to give tables away to it.
                connection.execute(sql.SQL("grant {} to current_user").format(sql.Identifier(role)))
    except errors.InsufficientPrivilege:
        return False
    # Another database of the cluster made it at this moment.
    except (errors.DuplicateObject, errors.UniqueViolation):
        return False
    return True


def _unmade(connection: psycopg.Connection[Any], missing: Sequence[str], owner: str) -> str:
    caller = _caller(connection)
    creates = [sql.SQL("create role {}").format(sql.Identifier(one)) for one in missing]
    return (
        f"there is no role {', '.join(missing)}, and {caller} may make none: nobody is given"
        f" anything. {_have_run(*creates, _joining(owner, caller))}"
    )


def _caller(connection: psycopg.Connection[Any]) -> str:
    (caller,) = connection.execute("select current_user").fetchone() or ("",)
    return str(caller)


def _joining(owner: str, caller: str) -> sql.Composed:
    return sql.SQL("grant {} to {}").format(sql.Identifier(owner), sql.Identifier(caller))


def _have_run(*statements: sql.Composed) -> str:
    text = sql.SQL("; ").join(statements).as_string()
    return f"Have an administrator run `{text}`, and migrate again"


def _give(connection: psycopg.Connection[Any], schema: str) -> Iterator[str]:
    """Give everything to those who are to have it; yield what could not be given."""
    owner = role_of("owner", schema)
    row = connection.execute(_OTHER_OWNER, [schema]).fetchone()
    if row is not None:
        yield f"nobody is given anything: that is for {row[0]}, who owns the tables"
        return
    try:
        with connection.transaction():
            grant(connection, schema, like=schema)
            _hand_over(connection, schema, owner)
    except errors.InsufficientPrivilege as error:
        yield f"nobody is given anything: {error.diag.message_primary}. {_lacks(connection, owner)}"


def _lacks(connection: psycopg.Connection[Any], owner: str) -> str:
    """Return what the caller lacks to give: membership, or the schema itself."""
    row = connection.execute("select pg_catalog.pg_has_role(%s, 'usage')", [owner]).fetchone()
    if row == (True,):
        return "Migrate as the role that owns the schema"
    return _have_run(_joining(owner, _caller(connection)))


def _hand_over(connection: psycopg.Connection[Any], schema: str, owner: str) -> None:
    """Make the role the owner of what the migrations made; nothing else that is in the schema."""
    values = {"schema": schema, "names": list(_names()), "owner": owner}
    query = (SHIPPED / "of_others.sql").read_bytes()
    for (what,) in connection.execute(query, values).fetchall():
        connection.execute(f"alter {what} owner to {sql.Identifier(owner).as_string()}".encode())


def _names() -> Iterator[str]:
    yield "migration"
    for migration in read_migrations(SHIPPED):
        for name in _MADE.findall(migration.text):
            yield name.removeprefix("{schema}.")
