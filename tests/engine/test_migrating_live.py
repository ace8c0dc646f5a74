"""Migrations that are applied while senders and workers are at work, of either version."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from databases import wait_until_blocked
from enginekit import PATIENCE, count, job, runs, until, until_async, working
from jobspec_engine import AsyncClient, Client
from jobspec_engine import migrate as migrate_module
from jobspec_engine.errors import MigrationError
from jobspec_engine.migrate import SHIPPED, migrate, pending

# The statements of before 0002 that are not what they were.
BEFORE = Path(__file__).parent / "before_0002"


@pytest.fixture
def old_dsn(empty_dsn, tmp_path):
    """A database whose schema lacks all migrations but the first."""
    (tmp_path / "0001_init.sql").write_bytes((SHIPPED / "0001_init.sql").read_bytes())
    migrate(empty_dsn, folder=tmp_path)
    return empty_dsn


@pytest.fixture
def old(old_dsn):
    """A connection to the database with the old schema."""
    with psycopg.connect(old_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def impatient(monkeypatch):
    """Have migrations give way at once."""
    monkeypatch.setattr(migrate_module, "_LOCK_PATIENCE", 20)
    monkeypatch.setattr(migrate_module, "_PAUSE", 0.01)


def with_old_statements(worker):
    """Have a worker execute what it did before 0002."""
    queries = worker._statements._queries
    for file in BEFORE.glob("*.sql"):
        queries[file.stem] = file.read_bytes().replace(b"{schema}", b'"jobspec"')


async def send_until(client, enough, most=2_000):
    """Send, one event after the other, until `enough` is set; return how many that were."""
    for n in range(most):
        if enough.is_set():
            return n
        await client.send("event", {"n": n})
    raise AssertionError("the migration did not end")


async def migrate_among(dsn, compiled):
    """Migrate while events are sent from several sides; return how many that were."""
    done = asyncio.Event()
    async with AsyncClient(compiled, dsn) as client, asyncio.TaskGroup() as group:
        await client.send("event", {})
        senders = [group.create_task(send_until(client, done)) for _ in range(4)]
        await asyncio.to_thread(migrate, dsn)
        await client.send("event", {})
        done.set()
    return 2 + sum(sender.result() for sender in senders)


async def test_a_migration_is_applied_while_workers_and_senders_run_and_nobody_sees_an_error(
    old_dsn, old, caplog
):
    compiled = job()
    async with asyncio.timeout(PATIENCE), working(compiled, old_dsn) as worker:
        with_old_statements(worker)
        sent = await migrate_among(old_dsn, compiled)
        await until_async(lambda: {run.state for run in runs(old)} == {"completed"})
    assert (sent, 1) == (count(old, "job_queue"), max(run.attempt for run in runs(old)))
    assert [one.message for one in caplog.records if one.levelno >= logging.WARNING] == []
    assert pending(old_dsn) == ()


@pytest.mark.usefixtures("impatient")
def test_a_migration_that_waits_for_a_transaction_lets_senders_pass(old_dsn, old):
    with ThreadPoolExecutor() as threads, Client(job(), old_dsn) as client:
        with psycopg.connect(old_dsn) as holder:
            client.send("event", {}, connection=holder)
            migrating = threads.submit(migrate, old_dsn)
            wait_until_blocked(old)
            client.send("event", {})
            assert not migrating.done()
        assert migrating.result(PATIENCE)
    assert count(old, "job_queue") == 2


@pytest.mark.usefixtures("impatient")
def test_a_migration_that_never_gets_its_table_says_what_to_look_for(old_dsn, monkeypatch):
    monkeypatch.setattr(migrate_module, "_TRIES", 2)
    with Client(job(), old_dsn) as client, psycopg.connect(old_dsn) as holder:
        client.send("event", {}, connection=holder)
        with pytest.raises(MigrationError, match="a transaction holds the tables of schema"):
            migrate(old_dsn)


def test_inside_the_callers_transaction_a_migration_waits_as_long_as_the_caller_does(old_dsn, old):
    migrated = threading.Event()

    def migrate_in_transaction():
        with psycopg.connect(old_dsn) as caller:
            caller.execute("set local lock_timeout = '1h'")
            migrate(caller)
            migrated.set()

    with ThreadPoolExecutor() as threads:
        with psycopg.connect(old_dsn) as holder:
            holder.execute("lock table jobspec.job_queue in row exclusive mode")
            migrating = threads.submit(migrate_in_transaction)
            wait_until_blocked(old)
        migrating.result(PATIENCE)
    assert until(migrated.is_set)


def test_an_index_that_was_made_before_its_migration_is_taken(old_dsn, old):
    text = (SHIPPED / "0002_ready_by_job.sql").read_text()
    (index,) = [one for one in text.split(";") if "job_queue_ready" in one]
    made = index.strip().replace("create index", "create index concurrently")
    old.execute(made.replace("{schema}", "jobspec"))
    migrate(old_dsn)
    assert pending(old_dsn) == ()
