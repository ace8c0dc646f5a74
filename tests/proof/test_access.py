"""What the roles of a schema must not do, and what its reader can."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from enginekit import SQL
from jobspec.cli import main
from jobspec_engine import Client, DeadLetters
from jobspec_engine.access import KINDS, give_access
from jobspec_engine.calls import fetch
from proof.accesskit import HOUR, command, fill, fills, member, refused

TABLES = (
    "job_event",
    "job_queue",
    "job_dispatch",
    "job_idempotency",
    "job_step",
    "job_dead_letter",
    "job_cron",
    "job_pause",
    "job_worker",
    "migration",
)


@pytest.fixture(scope="module")
def opened(databases, template):
    """The address of a database whose roles have their access."""
    name, dsn = databases.create(template)
    assert give_access(dsn).lacking == ()
    yield dsn
    databases.drop(name)


@pytest.fixture(scope="module")
def filled(opened):
    """The same with something in each table."""
    asyncio.run(fill(opened))
    return opened


@pytest.fixture(scope="module")
def logins(opened):
    """An address for somebody in each of the roles, by its kind."""
    with (
        member(opened, "sender") as sender,
        member(opened, "worker") as worker,
        member(opened, "reader") as reader,
        member(opened, "owner") as owner,
    ):
        yield {"sender": sender, "worker": worker, "reader": reader, "owner": owner}


# --- what they must not do

SENDERS_MUST_NOT = {
    "read payloads": "select data from jobspec.job_event",
    "read names of events": "select name from jobspec.job_event",
    "read results": "select result from jobspec.job_queue",
    "read errors": "select errors from jobspec.job_queue",
    "read leases": "select lease_token from jobspec.job_queue",
    "read keys of runs": "select debounce_key from jobspec.job_queue",
    "read idempotency keys": "select key from jobspec.job_idempotency",
    "read results of steps": "select result from jobspec.job_step",
    "read dead letters": "select message from jobspec.job_dead_letter",
    "read workers": "select name from jobspec.job_worker",
    "return what it may not read": "insert into jobspec.job_event values"
    " ('x', 'x', '{}', 0, now()) returning data",
    "replace a payload": "update jobspec.job_event set data = '{}'",
    "take a run": "update jobspec.job_queue set state = 'running'",
    "take a lease": "update jobspec.job_queue set lease_token = gen_random_uuid()",
    "extend a lease": "update jobspec.job_queue set lease_until = now()",
    "end a run": "update jobspec.job_queue set state = 'completed', finished_at = now()",
    "give a result": "update jobspec.job_queue set result = '1'",
    "cancel a run": "select jobspec.cancel(array[1])",
    "enqueue a run that has a lease": "insert into jobspec.job_queue (lease_token) values (null)",
    "enqueue a run that has a parent": "insert into jobspec.job_queue (parent_run_id) values (1)",
    "put off a run that is running": "update jobspec.job_queue set run_at = run_at + interval '1 h'"
    " where state = 'running'",
    "put off a run that waits": "update jobspec.job_queue set run_at = run_at + interval '1 h'"
    " where state = 'pending' and debounce_digest is null",
    "give a run another event": "update jobspec.job_queue set event_id = 'known'"
    " where job_id = 'held'",
    "give a run attempts": "update jobspec.job_queue set max_attempts = 99 where job_id = 'held'",
    "wake a run with another event": "update jobspec.job_queue set signalled = true, event_id = 'x'"
    " where job_id = 'held'",
    "free a key": "update jobspec.job_idempotency set expires_at = now()",
    "keep a key for ever": "update jobspec.job_idempotency set expires_at = 'infinity'",
    "have a key name another run": "update jobspec.job_idempotency set run_id = 0",
    "change the text of a key": "update jobspec.job_idempotency set key = 'x'",
    "change a key": "update jobspec.job_idempotency set key_digest = sha256('x')",
    "forge the result of a step": "update jobspec.job_step set result = '1' where kind = 'run'",
    "forge a step": "insert into jobspec.job_step (run_id) values (1)",
    "have a step wait on": "update jobspec.job_step set state = 'waiting' where kind = 'wait'",
    "have a wait fail": "update jobspec.job_step set error = '1' where kind = 'wait'",
    "pause a job": "insert into jobspec.job_pause values ('done', now())",
    "move a schedule": "update jobspec.job_cron set ticked_until = now()",
    "pass for a worker": "insert into jobspec.job_worker (name) values ('x')",
}
WORKERS_MUST_NOT = {
    "replace a payload": "update jobspec.job_event set data = '{}'",
    "rewrite why a run died": "update jobspec.job_dead_letter set message = ''",
}
NONE_BUT_THE_OWNER_MAY = {
    "drop a table": "drop table jobspec.job_step",
    "empty a table": "truncate jobspec.job_worker",
    "change a table": "alter table jobspec.job_queue add more int",
    "let a trigger sleep": "alter table jobspec.job_step disable trigger user",
    "make a table": "create table jobspec.more (a int)",
    "make a function": "create function jobspec.more() returns int language sql return 1",
    "replace a function": "create or replace function jobspec.now() returns timestamptz"
    " language sql stable return '-infinity'::timestamptz",
    "drop the schema": "drop schema jobspec cascade",
    "migrate": "insert into jobspec.migration values (99, 'x', 'x')",
    "hide a migration": "delete from jobspec.migration",
    "take what the owner has": "set role jobspec_owner",
}
NONE_MAY = {
    "make a role": "create role jobspec_more",
    "make a schema": "create schema jobspec_more",
    "drop the schema": "drop schema jobspec cascade",
}
CASES = [
    *(("sender", what, statement) for what, statement in SENDERS_MUST_NOT.items()),
    *(("worker", what, statement) for what, statement in WORKERS_MUST_NOT.items()),
    *(("reader", what, text) for what, text in SENDERS_MUST_NOT.items() if "read" not in what),
    *(
        (kind, what, statement)
        for kind in ("sender", "worker", "reader")
        for what, statement in NONE_BUT_THE_OWNER_MAY.items()
    ),
    *((kind, what, text) for kind in KINDS for what, text in NONE_MAY.items()),
    *(("sender", f"delete from {table}", f"delete from jobspec.{table}") for table in TABLES),  # noqa: S608
    *(("reader", f"delete from {table}", f"delete from jobspec.{table}") for table in TABLES),  # noqa: S608
    *(
        ("reader", f"add to {table}", f"insert into jobspec.{table} default values")
        for table in TABLES
    ),
    ("reader", "take a run's number", "select nextval('jobspec.job_queue_id_seq')"),
    ("reader", "lock a run", "select from jobspec.job_queue for share"),
    ("reader", "add a job", "select jobspec.add_job('done')"),
]


@pytest.mark.parametrize(
    ("kind", "what", "statement"), CASES, ids=[f"{kind}: {what}" for kind, what, _ in CASES]
)
def test_nobody_does_what_is_not_its_work(filled, logins, kind, what, statement):
    assert refused(logins[kind], statement)


def test_what_a_guard_refuses_is_there_to_be_done(filled):
    """Were there no such rows, statements about them would be refused nothing."""
    for what in ("put off a run that is running", "put off a run that waits", "free a key"):
        with psycopg.connect(filled) as connection:
            assert connection.execute(SENDERS_MUST_NOT[what]).rowcount
            connection.rollback()


def test_a_sender_can_not_claim(filled, logins):
    claim = SQL.claim(("done",), 1, HOUR, uuid4(), "sender")
    with psycopg.connect(logins["sender"]) as connection, pytest.raises(InsufficientPrivilege):
        fetch(connection, claim)


def test_a_sender_can_not_prune_or_replay(filled, logins):
    with Client(fills(), logins["sender"]) as client, pytest.raises(InsufficientPrivilege):
        client.replay_many(DeadLetters())
    assert "permission denied" in command(logins["sender"], "prune", code=1)


def test_a_sender_can_not_get_round_a_guard_by_functions_of_its_own(filled, logins):
    """A function of the engine is found where its maker said, not where the caller says."""
    with psycopg.connect(logins["sender"]) as connection, psycopg.connect(filled) as owner:
        owner.execute("create schema evil")
        owner.execute(
            "create function evil.has_table_privilege(oid, text) returns boolean"
            " language sql return true"
        )
        owner.execute("grant usage on schema evil to public")
        owner.commit()
        connection.execute("set search_path = evil, pg_catalog")
        with pytest.raises(InsufficientPrivilege, match="to change this row of table"):
            connection.execute("update jobspec.job_idempotency set run_id = 0")
        connection.rollback()
        owner.execute("drop schema evil cascade")


def test_functions_that_run_as_their_owner_look_nothing_up_where_the_caller_says(connection):
    """None does now: each runs with the rights of its caller."""
    found = connection.execute(
        "select proname from pg_proc where pronamespace = 'jobspec'::regnamespace and prosecdef"
        " and not coalesce(proconfig::text, '') like '%search_path%'"
    ).fetchall()
    assert found == []


# --- what a reader can do

READERS = [["runs"], ["events"], ["stats"], ["dead-letters"], ["run", "3"]]


@pytest.mark.parametrize("arguments", READERS, ids=lambda arguments: arguments[0])
def test_a_reader_looks_at_everything(filled, logins, arguments):
    assert "fails" in command(logins["reader"], *arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_everybody_but_the_sender_can_ask_the_doctor(filled, logins, kind):
    result = CliRunner().invoke(main, ["doctor", "--dsn", logins[kind]])
    if kind == "sender":
        assert (result.exit_code, "permission denied" in result.output) == (1, True)
    else:
        assert "WRONG" not in result.output
        assert "this role may not create a schema" in result.output


def test_a_reader_sees_every_table(connection, filled, logins):
    found = connection.execute("select tablename from pg_tables where schemaname = 'jobspec'")
    tables = {name for (name,) in found}
    assert tables == set(TABLES)
    with psycopg.connect(logins["reader"]) as reader:
        for table in tables:
            reader.execute(sql.SQL("select from jobspec.{}").format(sql.Identifier(table)))
