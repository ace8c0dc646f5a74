"""What a worker survives: lost, silent and refused connections, under load."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
import threading
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool.base import AttemptWithBackoff

from enginekit import (
    PATIENCE,
    Gate,
    count,
    job,
    run_until_idle,
    runs,
    until_async,
    worker,
    working,
)
from jobspec_engine import Client, EmbeddedPostgres, Event
from jobspec_engine.database import set_up_session
from jobspec_engine.migrate import migrate
from jobspec_engine.wakeup import listen

SHORT = timedelta(seconds=1)


def send(dsn, compiled, how_many=1):
    with Client(compiled, dsn) as client:
        client.send_many([Event("event", {"n": n}) for n in range(how_many)])


def states(connection):
    return {run.state for run in runs(connection)}


@pytest.fixture
def server_folder():
    """A folder for a server of one's own."""
    with tempfile.TemporaryDirectory(prefix="jobspec-own-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        yield folder


@contextmanager
def server(folder, **settings):
    """Start a server of one's own, or start it again; give its address."""
    bin_dir = os.environ.get("JOBSPEC_TEST_PG_BIN")
    with EmbeddedPostgres(folder, {"fsync": "off", **settings}, bin_dir) as running:
        migrate(running.dsn)
        yield running.dsn


class Line:
    """A TCP proxy in front of a server, which can go silent and hang up on nobody."""

    def __init__(self, dsn):
        target = conninfo_to_dict(dsn)
        self._target = str(target["host"]), int(target["port"])
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open = threading.Event()
        self._open.set()
        self._sockets = []
        port = self._listening.getsockname()[1]
        self.dsn = make_conninfo(**target | {"host": "127.0.0.1", "port": port})

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc_info):
        self._open.set()
        for one in (self._listening, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def go_silent(self):
        """Swallow all that comes over the connections of now; those made later work."""
        self._open.clear()
        self._open = threading.Event()
        self._open.set()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = self._connect()
                self._sockets += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=_forward, args=(*pair, self._open), daemon=True).start()

    def _connect(self):
        host, port = self._target
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        far = socket.socket(socket.AF_UNIX)
        far.connect(f"{host}/.s.PGSQL.{port}")
        return far


def _forward(source, target, is_open):
    with suppress(OSError):
        while data := source.recv(65536):
            if is_open.is_set():
                target.sendall(data)
        if is_open.is_set():
            target.shutdown(socket.SHUT_WR)


async def test_a_worker_under_load_survives_the_loss_of_one_connection_after_the_other(
    dsn, connection
):
    seen = []

    async def handler(context):
        seen.append(context.event.data["n"])
        if len(seen) % 20 == 0:
            lose_one(connection)

    compiled = job(handler=handler)
    send(dsn, compiled, 400)
    async with working(compiled, dsn, concurrency=10):
        await until_async(lambda: states(connection) == {"completed"})
    assert set(seen) == set(range(400))
    assert {run.attempt for run in runs(connection)} == {1}


def lose_one(connection):
    """End the session of a worker that was used last."""
    connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and application_name like 'jobspec %'"
        " order by state_change desc limit 1"
    )


async def test_nothing_is_lost_when_the_server_restarts_under_load(server_folder):
    half, seen = asyncio.Event(), []

    async def handler(context):
        seen.append(context.event.data["n"])
        await asyncio.sleep(0)
        if len(seen) >= 500:  # several handlers may have come between two looks
            half.set()

    compiled = job(handler=handler)
    with server(server_folder) as dsn:
        send(dsn, compiled, 1000)
        at_work = worker(compiled, dsn, concurrency=5)
        task = asyncio.create_task(at_work.run())
        await asyncio.wait_for(half.wait(), PATIENCE)
    with server(server_folder) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        await until_async(lambda: states(connection) == {"completed"})
        assert count(connection, "job_queue") == 1000
        at_work.stop()
        await asyncio.wait_for(task, PATIENCE)
    assert set(seen) == set(range(1000))


async def test_a_worker_is_back_soon_however_long_the_server_was_away(server_folder, monkeypatch):
    monkeypatch.setattr(AttemptWithBackoff, "DELAY_BACKOFF", 1000)  # as after a long outage
    compiled = job()
    with server(server_folder) as dsn:
        at_work = worker(compiled, dsn)
        task = asyncio.create_task(at_work.run())
        await until_async(lambda: at_work._database._pool.get_stats().get("connections_num"))
    pool = at_work._database._pool
    await until_async(lambda: pool.get_stats().get("connections_errors", 0) >= 5, "its tries")
    with server(server_folder) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        send(dsn, compiled)
        await until_async(lambda: states(connection) == {"completed"})
        at_work.stop()
        await asyncio.wait_for(task, PATIENCE)


def test_a_client_is_back_at_once_however_long_the_server_was_away(server_folder, monkeypatch):
    monkeypatch.setattr(AttemptWithBackoff, "DELAY_BACKOFF", 1000)  # as after a long outage
    compiled = job()
    with server(server_folder) as dsn:
        client = Client(compiled, dsn, connect_timeout=timedelta(seconds=1.5))
        client.open()
        client.send("event", {})
    for _ in range(2):  # the first finds a broken connection, the second none
        with pytest.raises(psycopg.OperationalError):
            client.send("event", {})
    with server(server_folder), client:
        assert client.send("event", {}).jobs[0].outcome == "enqueued"


async def test_a_line_that_goes_silent_is_noticed_within_a_lease(dsn, connection, caplog):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled)
    with Line(dsn) as line:
        async with working(compiled, line.dsn, lease=SHORT):
            await gate.next()
            line.go_silent()
            gate.open.set()
            await until_async(lambda: states(connection) == {"completed"})
            send(dsn, compiled)
            await until_async(lambda: [r.state for r in runs(connection)] == ["completed"] * 2)
    assert "the database has not answered for 1 s: connecting anew" in caplog.text


async def test_leases_are_kept_over_a_line_that_goes_silent(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled)
    with Line(dsn) as line:
        async with working(compiled, line.dsn, lease=3 * SHORT):
            await gate.next()
            at_work_until = runs(connection)[0].lease_until
            line.go_silent()
            await until_async(lambda: runs(connection)[0].lease_until > at_work_until)
            gate.open.set()
            await until_async(lambda: states(connection) == {"completed"})
    assert (runs(connection)[0].attempt, runs(connection)[0].refunds) == (1, 0)


async def test_a_silent_line_that_listens_is_given_up(dsn):
    woken = asyncio.Event()

    async def knock():
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute("select pg_notify('jobspec.wake', '')")

    with Line(dsn) as line:
        listening = asyncio.create_task(
            listen(line.dsn, "jobspec.wake", lambda _: woken.set(), knock, quiet=0.05, patience=5)
        )
        await asyncio.wait_for(woken.wait(), PATIENCE)
        line.go_silent()
        with pytest.raises(psycopg.OperationalError):
            await asyncio.wait_for(listening, PATIENCE)


async def test_a_full_pool_delays_runs_and_loses_none(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, 3)
    async with working(compiled, dsn, lease=SHORT) as at_work:
        for _ in range(3):
            await gate.next()
        async with all_taken(at_work._database._pool):
            gate.open.set()
            lease_until = runs(connection)[0].lease_until
            await until_async(lambda: runs(connection)[0].lease_until > lease_until)
        await until_async(lambda: states(connection) == {"completed"})
    assert {(run.attempt, run.refunds) for run in runs(connection)} == {(1, 0)}


@asynccontextmanager
async def all_taken(pool):
    """Have all connections of a pool in use."""
    taken = [await pool.getconn() for _ in range(pool.max_size)]
    yield
    for one in taken:
        await pool.putconn(one)


async def test_a_server_that_takes_no_more_connections_is_waited_for(server_folder, caplog):
    compiled = job()
    with server(server_folder, max_connections="10", superuser_reserved_connections="0") as dsn:
        send(dsn, compiled)
        taken = take_all_connections(dsn)
        at_work = worker(compiled, dsn)
        task = asyncio.create_task(at_work.run())
        await until_async(lambda: "too many clients" in caplog.text, "a line in the log")
        looking, *others = taken
        for other in others:
            other.close()
        await until_async(lambda: states(looking) == {"completed"})
        at_work.stop()
        await asyncio.wait_for(task, PATIENCE)
        looking.close()


def take_all_connections(dsn):
    taken = []
    with suppress(psycopg.OperationalError):
        while True:
            taken.append(psycopg.connect(dsn, autocommit=True))
    return taken


async def test_a_database_that_can_not_be_written_for_now_is_waited_for(dsn, connection, caplog):
    """After a failover, the old server may take statements and refuse to write."""
    compiled = job()
    send(dsn, compiled)
    with read_only(connection):
        at_work = asyncio.create_task(run_until_idle(compiled, dsn))
        await until_async(lambda: "read-only transaction" in caplog.text)
    await at_work
    assert states(connection) == {"completed"}


def test_nor_does_a_client_keep_a_connection_that_may_not_write(dsn, connection):
    with read_only(connection):
        client = Client(job(), dsn)
        client.open()
        client._pool._pool.wait()
    with client:
        assert client.send("event", {}).jobs


@contextmanager
def read_only(connection):
    """Have new sessions refuse to write; those that began meanwhile go on so."""
    name = connection.info.dbname
    connection.execute(f'alter database "{name}" set default_transaction_read_only = on')
    yield
    connection.execute(f'alter database "{name}" reset default_transaction_read_only')


def test_a_direct_connection_goes_through_no_pooler(connection):
    assert not set_up_session(connection)
    assert connection.prepare_threshold is not None


async def test_a_direct_connection_over_which_no_wake_up_comes_is_given_up(dsn):
    async def knock():
        """Somebody's knock that never arrives."""

    with pytest.raises(psycopg.OperationalError, match="no wake-up came"):
        await asyncio.wait_for(listen(dsn, "jobspec.wake", print, knock, patience=0.05), PATIENCE)
