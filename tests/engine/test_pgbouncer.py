"""Through the real PgBouncer. Without it the tests are skipped; where `CI` is set they fail."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from enginekit import EMAIL, Gate, job, runs, until, until_async, working
from jobspec_engine import AsyncClient, Client
from jobspec_engine.database import suit_pooler

SILENT = "no wake-up comes through the connection pooler"

CONFIG = """\
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
pool_mode = {mode}
auth_type = any
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
default_pool_size = 3
server_idle_timeout = 1
"""


def program():
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if found is None:
        no_pgbouncer = pytest.fail if os.environ.get("CI") else pytest.skip
        no_pgbouncer("PgBouncer is not installed: apt-get install pgbouncer")
    return found


@contextmanager
def pgbouncer(dsn, mode):
    """Start a PgBouncer in front of a server; give the address through it."""
    command, target = program(), conninfo_to_dict(dsn)
    with tempfile.TemporaryDirectory(prefix="jobspec-pgbouncer-") as folder:
        Path(folder).chmod(0o755)
        own_port = free_port()
        config = Path(folder, "pgbouncer.ini")
        config.write_text(CONFIG.format(mode=mode, own_port=own_port, **target))
        account = {"user": "nobody"} if os.geteuid() == 0 else {}  # it refuses to run as root
        with subprocess.Popen([command, "-q", config], stderr=subprocess.DEVNULL, **account) as own:
            through = make_conninfo(**target | {"host": "127.0.0.1", "port": own_port})
            try:
                until(lambda: answers(through), "PgBouncer")
                yield through
            finally:
                own.terminate()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as own:
        return own.getsockname()[1]


def answers(dsn):
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture
def pooled_dsn(dsn):
    """This test's database through PgBouncer in transaction mode."""
    with pgbouncer(dsn, "transaction") as through:
        yield through


async def test_a_worker_polls_and_runs_all_in_transaction_mode(pooled_dsn, connection, caplog):
    compiled = job(idempotency=EMAIL["idempotency"])
    async with working(compiled, pooled_dsn), AsyncClient(compiled, pooled_dsn) as client:
        for n in range(20):
            await client.send("event", {"idempotencyKey": n})
            await client.send("event", {"idempotencyKey": n})
        await until_async(lambda: [run.state for run in runs(connection)] == ["completed"] * 20)
        await until_async(lambda: SILENT in caplog.text, "a line in the log")
    assert caplog.text.count(SILENT) == 1
    assert "can't be reached" not in caplog.text


async def test_a_lease_is_renewed_through_a_pooler(pooled_dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    with Client(compiled, pooled_dsn) as client:
        client.send("event", {})
    async with working(compiled, pooled_dsn, lease=timedelta(seconds=1)):
        await gate.next()
        lease_until = runs(connection)[0].lease_until
        await until_async(lambda: runs(connection)[0].lease_until > lease_until, "a heartbeat")
        gate.open.set()


async def test_wake_ups_come_through_in_session_mode(dsn, caplog):
    gate = Gate()
    compiled = job(handler=gate)
    with pgbouncer(dsn, "session") as through:
        async with working(compiled, through, poll=timedelta(hours=1)):
            with psycopg.connect(dsn, autocommit=True) as connection:
                await until_async(lambda: listening(connection))
            with Client(compiled, dsn) as client:
                client.send("event", {})
            await gate.next()
            gate.open.set()
    assert SILENT not in caplog.text


def listening(connection):
    query = "select true from pg_stat_activity where query like 'listen%%' and datname = %s"
    return connection.execute(query, [connection.info.dbname]).fetchone()


def test_nothing_is_prepared_through_a_pooler(pooled_dsn):
    with psycopg.connect(pooled_dsn, autocommit=True) as pooled:
        assert suit_pooler(pooled)
        for _ in range(10):
            pooled.execute("select 1 where %s", [True])
        assert pooled.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)
