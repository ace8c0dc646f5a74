"""How the roles of a schema come to be, to have what they may do, and to go."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from databases import together
from jobspec_engine.access import KINDS, give_access, role_of
from jobspec_engine.drift import drift
from jobspec_engine.errors import MigrationError
from jobspec_engine.migrate import migrate
from proof.accesskit import command, login_in, member, refused

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "deployment.md"


# --- how they come to have it


@pytest.fixture
def schema():
    """A schema that has no roles yet, since its name is new; they are dropped at the end."""
    return f"access {secrets.token_hex(4)}"


@pytest.fixture
def dropped(schema, empty_dsn, server_dsn):
    """Drops the schema in its database at the end, and then its roles in the cluster."""
    yield
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        home = sql.Identifier(schema)
        connection.execute(sql.SQL("drop schema if exists {} cascade").format(home))
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        for kind in KINDS:
            name = sql.Identifier(role_of(kind, schema))
            connection.execute(sql.SQL("drop role if exists {}").format(name))


def owners(connection, schema):
    rows = connection.execute(
        "select distinct pg_get_userbyid(relowner) from pg_class where relkind = 'r'"
        " and relnamespace = %(schema)s::text::regnamespace"
        " union select pg_get_userbyid(proowner) from pg_proc"
        " where pronamespace = %(schema)s::text::regnamespace",
        {"schema": sql.Identifier(schema).as_string()},
    )
    return {name for (name,) in rows}


def test_migrating_makes_the_roles_once_and_says_so(dropped, empty_dsn, schema):
    first = command(empty_dsn, "migrate", schema=schema)
    assert [f"made role {role_of(kind, schema)}" in first for kind in KINDS] == [True] * 4
    assert command(empty_dsn, "migrate", schema=schema) == f"schema {schema} is up to date\n"
    assert drift(empty_dsn, schema) == ()
    with psycopg.connect(empty_dsn) as connection:
        assert owners(connection, schema) == {role_of("owner", schema)}


def test_two_databases_of_a_cluster_share_the_roles(dropped, empty_dsn, databases, schema):
    name, other_dsn = databases.create()
    dsns = [empty_dsn, other_dsn]
    for dsn in dsns:
        migrate(dsn, schema)
    first, second = together(*(lambda dsn=dsn: give_access(dsn, schema) for dsn in dsns))
    assert sorted(first.made + second.made) == sorted(role_of(kind, schema) for kind in KINDS)
    assert first.lacking == second.lacking == ()
    for dsn in dsns:
        with member(dsn, "reader", schema) as reader:
            assert command(reader, "runs", schema=schema) == "no runs\n"
    databases.drop(name)


@pytest.fixture
def humble(dropped, empty_dsn):
    """The address of a database for somebody who may make schemas in it, and no role."""
    with login_in(empty_dsn) as dsn:
        let_make_schemas(empty_dsn, dsn)
        yield dsn


def let_make_schemas(dsn, login):
    with psycopg.connect(dsn, autocommit=True) as connection:
        name = sql.Identifier(conninfo_to_dict(login)["user"])
        database = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("grant create on database {} to {}").format(database, name))


def test_who_may_make_no_role_is_told_what_an_administrator_runs(humble, empty_dsn, schema):
    said = command(humble, "migrate", schema=schema)
    assert "applied 0001_init" in said
    assert "may make none: nobody is given anything" in said
    (statements,) = re.findall("`(.*)`", said)
    with psycopg.connect(empty_dsn, autocommit=True) as administrator:
        administrator.execute(statements)
    assert command(humble, "migrate", schema=schema) == f"schema {schema} is up to date\n"
    with psycopg.connect(empty_dsn) as connection:
        assert owners(connection, schema) == {role_of("owner", schema)}
    with member(empty_dsn, "reader", schema) as reader:
        assert command(reader, "runs", schema=schema) == "no runs\n"


def make_roles(connection, schema):
    """Make the roles as a migration of another database of the cluster has done."""
    for kind in KINDS:
        name = sql.Identifier(role_of(kind, schema))
        connection.execute(sql.SQL("create role {}").format(name))


def test_who_is_no_member_of_the_owners_is_told_what_an_administrator_runs(
    humble, empty_dsn, schema
):
    with psycopg.connect(empty_dsn, autocommit=True) as administrator:
        make_roles(administrator, schema)
        (statements,) = re.findall("`(.*)`", command(humble, "migrate", schema=schema))
        administrator.execute(statements)
        assert command(humble, "migrate", schema=schema) == f"schema {schema} is up to date\n"
        assert owners(administrator, schema) == {role_of("owner", schema)}


def test_who_does_not_own_the_schema_is_told_who_must_migrate(humble, empty_dsn, schema):
    login, home, owner = map(
        sql.Identifier, (conninfo_to_dict(humble)["user"], schema, role_of("owner", schema))
    )
    with psycopg.connect(empty_dsn, autocommit=True) as administrator:
        make_roles(administrator, schema)
        administrator.execute(sql.SQL("create schema {}").format(home))
        for what in (sql.SQL("all on schema {}").format(home), owner):
            administrator.execute(sql.SQL("grant {} to {}").format(what, login))
        said = command(humble, "migrate", schema=schema)
    assert "nobody is given anything: permission denied for schema" in said
    assert "Migrate as the role that owns the schema" in said


def test_who_may_make_roles_but_is_no_superuser_needs_nobody(dropped, empty_dsn, schema):
    with (
        login_in(empty_dsn, options="createrole") as dsn,
        psycopg.connect(empty_dsn, autocommit=True) as connection,
    ):
        let_make_schemas(empty_dsn, dsn)
        assert "may make none" not in command(dsn, "migrate", schema=schema)
        assert owners(connection, schema) == {role_of("owner", schema)}
        with member(empty_dsn, "owner", schema) as owner:
            assert command(owner, "migrate", schema=schema) == f"schema {schema} is up to date\n"
        connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))
        for kind in KINDS:
            name = sql.Identifier(role_of(kind, schema))
            connection.execute(sql.SQL("drop owned by {}").format(name))
            connection.execute(sql.SQL("drop role {}").format(name))


def test_who_does_not_own_the_tables_is_told_who_does(access):
    with member(access, "worker") as dsn:
        lacking = give_access(dsn).lacking
    assert lacking == ("nobody is given anything: that is for jobspec_owner, who owns the tables",)


def test_a_role_that_can_log_in_is_no_group_and_is_given_nothing(empty_dsn, dropped, schema):
    migrate(empty_dsn, schema)
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        name = sql.Identifier(role_of("worker", schema))
        connection.execute(sql.SQL("create role {} login").format(name))
        (lack,) = give_access(empty_dsn, schema).lacking
        assert f"role {role_of('worker', schema)} is given nothing: it can log in" in lack
        assert owners(connection, schema) == {connection.info.user}


def test_the_schema_public_has_no_roles(empty_dsn):
    migrate(empty_dsn, "public")
    access = give_access(empty_dsn, "public")
    assert (access.made, len(access.lacking)) == ((), 1)


def test_what_else_is_in_the_schema_stays_as_it_is(dropped, empty_dsn, schema):
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        home = sql.Identifier(schema)
        connection.execute(sql.SQL("create schema {}").format(home))
        connection.execute(sql.SQL("create table {}.mine (a int)").format(home))
        migrate(connection, schema)
        assert give_access(connection, schema).lacking == ()
        assert owners(connection, schema) == {role_of("owner", schema), connection.info.user}
    with member(empty_dsn, "reader", schema) as reader:
        assert refused(reader, sql.SQL("select from {}.mine").format(home))


CHANGES = {
    "something more": "grant delete on jobspec.job_queue to jobspec_sender",
    "a column more": "grant select (result) on jobspec.job_queue to jobspec_sender",
    "something less": "revoke insert on jobspec.job_event from jobspec_sender",
    "the schema": "grant create on schema jobspec to jobspec_reader",
}


@pytest.mark.parametrize("what", CHANGES)
def test_drift_tells_of_privileges_that_were_given_or_taken(access, what):
    with psycopg.connect(access) as connection:
        connection.execute(CHANGES[what])
        (found,) = drift(connection)
        connection.rollback()
    assert found.kind == "privileges"
    assert re.fullmatch(r"(job_\w+|the schema) to jobspec_\w+", found.name)


def test_drift_tells_nothing_of_roles_that_were_given_nothing(dsn, access, empty_dsn):
    """They are the cluster's: another database may have them, and this one not."""
    migrate(empty_dsn)
    assert drift(empty_dsn) == ()


def test_the_guide_tells_how_to_drop_all_of_it(databases, schema, dropped):
    (statements,) = re.findall(r"```sql\n(drop .*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    statements = re.sub(r"jobspec_(\w+)", rf'"{schema}_\1"', statements)
    statements = statements.replace("schema jobspec ", f'schema "{schema}" ')
    name, dsn = databases.create()
    command(dsn, "migrate", schema=schema)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statements)
        left = connection.execute(
            "select from pg_roles where starts_with(rolname, %s)", [schema]
        ).fetchall()
    assert left == []
    databases.drop(name)


def test_a_name_that_can_not_be_a_schemas_has_no_roles(dsn):
    with pytest.raises(MigrationError, match="can not be the name of a schema"):
        give_access(dsn, "pg_jobs")
