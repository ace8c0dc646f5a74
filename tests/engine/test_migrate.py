"""Migrations: each once, in order, by whoever comes first, and not where they don't fit."""

from __future__ import annotations

import psycopg
import pytest

from databases import PythonProcess, processes_together, together, wait_until_blocked
from jobspec_engine.errors import MigrationError
from jobspec_engine.migrate import SHIPPED, migrate, pending, read_migrations

FIRST = "create table {schema}.thing (a integer, tags text[] not null default '{}');"
SECOND = "alter table {schema}.thing add b text; insert into {schema}.thing (b) values ('100%');"
ODD_NAME = 'O\'Brien "the é" {x}'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "0001_first.sql").write_text(FIRST)
    (tmp_path / "0002_second.sql").write_text(SECOND)
    return tmp_path


@pytest.fixture
def connection(empty_dsn):
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        yield connection


def versions(connection, schema="jobspec"):
    rows = connection.execute(
        psycopg.sql.SQL("select version from {}.migration order by version").format(
            psycopg.sql.Identifier(schema)
        )
    )
    return [row[0] for row in rows]


def has_schema(connection, schema="jobspec"):
    found = connection.execute("select from pg_namespace where nspname = %s", [schema])
    return found.fetchone() is not None


def test_migrating_applies_every_migration_in_order_and_says_which(connection, empty_dsn, folder):
    applied = migrate(empty_dsn, folder=folder)
    assert [str(step) for step in applied] == ["0001_first", "0002_second"]
    assert connection.execute("select tags, b from jobspec.thing").fetchall() == [([], "100%")]
    assert versions(connection) == [1, 2]


def test_migrating_twice_applies_nothing_the_second_time(empty_dsn, folder):
    migrate(empty_dsn, folder=folder)
    assert migrate(empty_dsn, folder=folder) == ()


def test_a_new_migration_is_applied_to_what_is_there(connection, folder):
    (folder / "0002_second.sql").rename(folder / "later")
    migrate(connection, folder=folder)
    (folder / "later").rename(folder / "0002_second.sql")
    assert [str(step) for step in migrate(connection, folder=folder)] == ["0002_second"]


def test_pending_tells_what_migrating_would_apply_and_changes_nothing(connection, folder):
    assert [str(step) for step in pending(connection, folder=folder)] == [
        "0001_first",
        "0002_second",
    ]
    assert not has_schema(connection)
    migrate(connection, folder=folder)
    assert pending(connection, folder=folder) == ()


def test_the_shipped_migrations_apply_and_are_all_recorded(connection):
    shipped = read_migrations(SHIPPED)
    assert [step.digest for step in migrate(connection)] == [step.digest for step in shipped]


@pytest.mark.parametrize("schema", ["jobspec", "public", ODD_NAME, "x" * 56])
def test_a_schema_may_be_called_anything(connection, schema):
    migrate(connection, schema)
    assert migrate(connection, schema) == ()
    assert versions(connection, schema) == [step.version for step in read_migrations(SHIPPED)]
    assert schema == "jobspec" or not has_schema(connection)


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ("", "it is empty"),
        ("x" * 57, "longer than 56 bytes"),
        ("é" * 29, "longer than 56 bytes"),
        ("pg_jobs", "`pg_` for itself"),
        ("a\0b", "can not be printed"),
        ("a\nb", "can not be printed"),
        ("\ud800", "can not be printed"),
        ("a$$b", "a `$` could end"),
        ("a%sb", "a `%` could be taken"),
    ],
)
@pytest.mark.parametrize("act", [migrate, pending])
def test_a_name_that_can_not_be_a_schemas_is_refused(connection, act, schema, fault):
    with pytest.raises(MigrationError, match="can not be the name of a schema") as raised:
        act(connection, schema)
    assert fault in str(raised.value)


def test_two_schemas_in_one_database_do_not_meet(connection, folder):
    migrate(connection, "one", folder)
    migrate(connection, "two", folder)
    assert versions(connection, "one") == versions(connection, "two") == [1, 2]


def test_a_search_path_of_the_caller_does_not_matter(empty_dsn, connection):
    connection.execute("create schema other")
    for path in ["other", ""]:
        with psycopg.connect(empty_dsn, options=f"-c search_path={path}") as caller:
            migrate(caller, f"jobspec_{path}")
    tables = connection.execute("select from pg_tables where schemaname = 'other'").fetchall()
    assert tables == []


def test_a_schema_that_is_there_already_is_filled(connection, folder):
    connection.execute("create schema jobspec")
    assert len(migrate(connection, folder=folder)) == 2


def test_a_role_that_may_create_nothing_can_see_that_nothing_is_pending(connection, folder):
    migrate(connection, folder=folder)
    connection.execute("create role jobspec_test_reader")
    connection.execute("grant usage on schema jobspec to jobspec_test_reader")
    connection.execute("grant select on jobspec.migration to jobspec_test_reader")
    connection.execute("set role jobspec_test_reader")
    try:
        assert migrate(connection, folder=folder) == ()
        assert pending(connection, folder=folder) == ()
    finally:
        connection.execute("reset role")
        connection.execute("drop owned by jobspec_test_reader")
        connection.execute("drop role jobspec_test_reader")


def test_inside_the_callers_transaction_migrating_is_part_of_it(empty_dsn, connection, folder):
    with psycopg.connect(empty_dsn) as caller:
        caller.execute("select 1")
        migrate(caller, folder=folder)
        assert not has_schema(connection)
        caller.rollback()
    assert not has_schema(connection)


def test_on_an_idle_connection_each_migration_is_committed(empty_dsn, connection, folder):
    with psycopg.connect(empty_dsn) as caller:
        migrate(caller, folder=folder)
        caller.rollback()
    assert versions(connection) == [1, 2]


def test_a_migration_edited_after_it_was_applied_is_refused(connection, folder):
    migrate(connection, folder=folder)
    (folder / "0001_first.sql").write_text(FIRST + "-- an afterthought")
    for act in (migrate, pending):
        with pytest.raises(MigrationError, match="0001_first is not what was applied"):
            act(connection, folder=folder)


def test_line_endings_of_a_checkout_are_no_edit(connection, folder):
    (folder / "0001_first.sql").write_bytes(b"create table\n{schema}.thing (a integer);\n")
    migrate(connection, folder=folder)
    (folder / "0001_first.sql").write_bytes(b"create table\r\n{schema}.thing (a integer);\r\n")
    assert migrate(connection, folder=folder) == ()


def test_a_schema_newer_than_the_code_is_refused(connection, folder):
    migrate(connection, folder=folder)
    (folder / "0002_second.sql").unlink()
    for act in (migrate, pending):
        with pytest.raises(MigrationError, match="newer than this code: it is at 0002_second"):
            act(connection, folder=folder)


def test_a_migration_that_fails_is_named_and_leaves_those_before_it(connection, folder):
    (folder / "0002_second.sql").write_text("create table {schema}.other (a integer); select nope;")
    with pytest.raises(MigrationError, match=r"0002_second failed: .*nope"):
        migrate(connection, folder=folder)
    assert versions(connection) == [1]
    assert connection.execute("select to_regclass('jobspec.other')").fetchone() == (None,)


def test_a_gap_in_the_numbers_is_refused(connection, folder):
    (folder / "0004_fourth.sql").write_text("")
    with pytest.raises(MigrationError, match="0004_fourth should have the number 0003"):
        migrate(connection, folder=folder)


def test_one_number_twice_is_refused(connection, folder):
    (folder / "0002_again.sql").write_text("")
    with pytest.raises(MigrationError, match="should have the number 0003"):
        migrate(connection, folder=folder)


def test_threads_that_migrate_at_once_apply_each_migration_once(empty_dsn, folder):
    outcomes = together(*[lambda: migrate(empty_dsn, folder=folder)] * 8)
    assert sorted(str(step) for steps in outcomes for step in steps) == [
        "0001_first",
        "0002_second",
    ]


MIGRATE = """
import sys
from jobspec_engine.migrate import migrate
print(*migrate(sys.argv[1]))
"""


def test_processes_that_migrate_at_once_apply_each_migration_once(empty_dsn):
    outputs = processes_together(MIGRATE, (empty_dsn,), (empty_dsn,), (empty_dsn,))
    applied = [name for output in outputs for name in output.split()]
    assert sorted(applied) == [str(step) for step in read_migrations(SHIPPED)]


def test_a_process_killed_in_the_middle_leaves_nothing_half_done(empty_dsn, connection, folder):
    # The first migration takes a lock that the test holds, so it is in the middle when it dies.
    waits = "create table {schema}.half (a integer); select pg_advisory_xact_lock(77);"
    (folder / "0001_first.sql").write_text(waits)
    connection.execute("select pg_advisory_lock(77)")
    code = "import sys, pathlib\nfrom jobspec_engine.migrate import migrate\n"
    code += "print('going', flush=True)\nmigrate(sys.argv[1], folder=pathlib.Path(sys.argv[2]))"
    with PythonProcess(code, empty_dsn, folder) as process:
        process.expect("going")
        wait_until_blocked(connection)
        process.process.kill()
    connection.execute("select pg_advisory_unlock(77)")
    (folder / "0001_first.sql").write_text(FIRST)
    assert len(migrate(connection, folder=folder)) == 2
    assert connection.execute("select to_regclass('jobspec.half')").fetchone() == (None,)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_lacks_most_characters_is_refused(connection, empty_dsn, encoding):
    name = f"{connection.info.dbname}_{encoding.lower()}"
    connection.execute(
        f"create database {name} template template0 encoding '{encoding}' locale 'C'"
    )
    try:
        with pytest.raises(MigrationError, match=f"keeps text as {encoding}.* encoding 'UTF8'"):
            migrate(psycopg.conninfo.make_conninfo(empty_dsn, dbname=name))
    finally:
        connection.execute(f"drop database {name} with (force)")
