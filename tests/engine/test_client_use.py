"""How clients are opened, and what they say when they are used the wrong way."""

from __future__ import annotations

import logging
import socket
from datetime import timedelta

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

import jobspec
from databases import end_client_lines
from enginekit import PATIENCE, job, run_until_idle, runs, sqlalchemy_url
from jobspec_engine import AsyncClient, Client, Engine, NotOpenError, UnreachableError, Worker
from jobspec_engine.errors import MigrationError

SOON = timedelta(seconds=0.3)


@pytest.fixture
def nowhere():
    """The address of a port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"postgresql://postgres@127.0.0.1:{taken.getsockname()[1]}/postgres"


def test_a_client_may_be_opened_and_closed_by_calls(dsn, connection):
    client = Client(job(), dsn)
    client.open()
    assert client.send("event", {}).jobs[0].outcome == "enqueued"
    client.close()
    assert len(runs(connection)) == 1


async def test_an_async_client_may_be_opened_and_closed_by_calls(dsn, connection):
    client = AsyncClient(job(), dsn)
    await client.open()
    assert (await client.send("event", {})).jobs[0].outcome == "enqueued"
    await client.close()
    assert len(runs(connection)) == 1


def test_a_client_that_is_not_open_says_how_to_open_it(dsn):
    client = Client(job(), dsn)
    with pytest.raises(NotOpenError, match=r"use it in `with`, or call `open\(\)` first"):
        client.send("event", {})
    with client:
        pass
    for use in (lambda: client.cancel(1), client.open):
        with pytest.raises(NotOpenError, match="once it is closed, make another one"):
            use()


async def test_an_async_client_that_is_not_open_says_how_to_open_it(dsn):
    client = AsyncClient(job(), dsn)
    with pytest.raises(NotOpenError, match=r"in `async with`, or call `await open\(\)` first"):
        await client.send("event", {})
    async with client:
        pass
    with pytest.raises(NotOpenError, match="once it is closed, make another one"):
        await client.cancel(1)
    with pytest.raises(NotOpenError, match="once it is closed, make another one"):
        await client.open()


def test_a_database_that_is_down_is_one_error_that_says_why(nowhere, caplog):
    with (
        Client(job(), nowhere, connect_timeout=SOON) as client,
        pytest.raises(UnreachableError, match=r"within 0\.3 s: .*(refused|failed)") as raised,
    ):
        client.send("event", {})
    assert isinstance(raised.value, psycopg.OperationalError)
    assert "\n" not in str(raised.value)
    assert not caplog.records


async def test_a_database_that_is_down_is_one_error_to_an_async_client(nowhere, caplog):
    async with AsyncClient(job(), nowhere, connect_timeout=SOON) as client:
        with pytest.raises(UnreachableError, match=r"within 0\.3 s: .*(refused|failed)"):
            await client.send("event", {})
    assert not caplog.records


def test_a_pool_that_is_not_ours_logs_as_before(nowhere, caplog):
    with Client(job(), nowhere, connect_timeout=SOON):
        logging.getLogger("psycopg.pool").warning("error connecting in %r: %s", "theirs", "no")
    assert "error connecting in 'theirs': no" in caplog.text


def test_a_client_whose_connections_are_all_in_use_says_so(dsn):
    with Client(job(), dsn, max_connections=1, connect_timeout=SOON) as client:
        with (
            client._pool._pool.connection(),
            pytest.raises(UnreachableError, match=r"within 0\.3 s: all were in use"),
        ):
            client.send("event", {})
        client.send("event", {})


def test_a_schema_that_is_not_there_is_said_to_be_migrated(dsn):
    with (
        Client(job(), dsn, schema="nosuch") as client,
        pytest.raises(MigrationError, match="run `jobspec migrate --schema nosuch`"),
    ):
        client.send("event", {})


def test_a_database_without_tables_is_said_to_be_migrated(empty_dsn):
    with Client(job(), empty_dsn) as client:
        for use in (lambda: client.send("event", {}), lambda: client.add_job("job")):
            with pytest.raises(MigrationError, match="run `jobspec migrate"):
                use()
        with (
            psycopg.connect(empty_dsn) as own,
            pytest.raises(MigrationError, match="run `jobspec migrate"),
        ):
            client.send("event", {}, connection=own)


async def test_a_worker_and_an_async_client_say_so_too(empty_dsn):
    with pytest.raises(MigrationError, match="run `jobspec migrate"):
        await run_until_idle(job(), empty_dsn)
    async with AsyncClient(job(), empty_dsn) as client:
        with pytest.raises(MigrationError, match="run `jobspec migrate"):
            await client.send("event", {})
        async with await psycopg.AsyncConnection.connect(empty_dsn) as own:
            with pytest.raises(MigrationError, match="run `jobspec migrate"):
                await client.send("event", {}, connection=own)


@pytest.mark.parametrize("takes_jobs", [Client, AsyncClient, Engine, Worker])
def test_jobs_that_are_not_compiled_are_refused(takes_jobs):
    with pytest.raises(TypeError, match=r"not of type str: pass jobspec\.compile\('specs'\)"):
        takes_jobs("specs", "")
    with pytest.raises(TypeError, match=r"not of type Registry: pass jobspec\.compile\(…\)"):
        takes_jobs(jobspec.Registry(), "")


def test_an_unknown_keyword_is_refused_with_the_one_that_was_meant(dsn):
    with Client(job(), dsn) as client:
        with pytest.raises(TypeError, match=r"add_job\(\) takes no keyword dealy: .*`delay`\?"):
            client.add_job("job", dealy=timedelta(1))
        with pytest.raises(TypeError, match="takes no keyword when: it takes delay, job_key, "):
            client.add_job("job", when=timedelta(1))
        with pytest.raises(TypeError, match=r"takes no keyword dryrun: .*`dry_run`"):
            client.replay_many([1], dryrun=True)


async def test_a_connection_of_the_other_kind_is_refused(dsn):
    sync, its = Client(job(), dsn), AsyncClient(job(), dsn)
    async with await psycopg.AsyncConnection.connect(dsn) as own:
        for use in (
            lambda: sync.send("event", {}, connection=own),
            lambda: sync.add_job("job", connection=own),
            lambda: sync.cancel(1, connection=own),
        ):
            with pytest.raises(TypeError, match=r"of type psycopg\.Connection, not psycopg\.Asyn"):
                use()
    with psycopg.connect(dsn) as own:
        for use in (its.send("event", {}, connection=own), its.add_job("job", connection=own)):
            with pytest.raises(TypeError, match=r"of type psycopg\.AsyncConnection, not psycopg"):
                await use


async def test_the_front_door_takes_what_a_client_takes(dsn, connection):
    async with Engine(job(), dsn, connect_timeout=timedelta(seconds=PATIENCE)) as engine:
        added = await engine.add_job("job", {"n": 1}, delay=timedelta(hours=1))
        cancelled = await engine.cancel(added.run_id)
        assert cancelled.outcome == "cancelled"
        assert await engine.cancel_by_key("job", job_key="nosuch") == []
        replayed = await engine.replay(added.run_id)
        again = await engine.replay_many([added.run_id])
        assert again[0].replayed_as == replayed.replayed_as
        assert await engine.pause("job")
        assert await engine.resume("job")
    assert [run.state for run in runs(connection)] == ["cancelled", "pending"]


@pytest.mark.parametrize(
    ("option", "use"),
    [
        ("connect_timeout", lambda: Client(job(), "", connect_timeout=2)),
        ("connect_timeout", lambda: AsyncClient(job(), "", connect_timeout=2)),
        ("lease", lambda: Worker(job(), "", lease=5)),
        ("poll", lambda: Worker(job(), "", poll=0.5)),
        ("short", lambda: Worker(job(), "", short=None)),
    ],
)
def test_a_length_of_time_that_is_none_is_refused_by_the_option_s_name(option, use):
    with pytest.raises(TypeError, match=rf"^{option} must be a timedelta, not \w+: timedelta"):
        use()


@pytest.mark.parametrize("event", [("event", {}), {"name": "event", "data": {}}])
def test_what_is_sent_in_bulk_must_be_events(dsn, event):
    with (
        Client(job(), dsn) as client,
        pytest.raises(TypeError, match=r"must be an Event\(name, data\), not (tuple|dict)"),
    ):
        client.send_many([event])


async def test_a_connection_of_sqlalchemy_is_refused_with_where_its_own_is(dsn):
    engine = sqlalchemy.create_engine(sqlalchemy_url(dsn))
    with Client(job(), dsn) as client, engine.begin() as own:
        with pytest.raises(TypeError, match=r": pass connection\.connection\.driver_connection$"):
            client.send("event", {}, connection=own)
        client.send("event", {}, connection=own.connection.driver_connection)
    engine.dispose()
    engine = create_async_engine(sqlalchemy_url(dsn))
    async with AsyncClient(job(), dsn) as client, engine.begin() as own:
        with pytest.raises(TypeError, match=r"get_raw_connection\(\)\)\.driver_connection$"):
            await client.send("event", {}, connection=own)
    await engine.dispose()


def test_a_client_whose_idle_lines_all_ended_sends_without_a_pause(dsn, connection):
    with Client(job(), dsn, max_connections=8) as client:
        taken = [client._pool._pool.getconn() for _ in range(8)]
        for one in taken:
            client._pool._pool.putconn(one)
        assert end_client_lines(connection) == 8
        assert client.send("event", {}).jobs[0].outcome == "enqueued"
    assert len(runs(connection)) == 1


async def test_an_async_client_whose_idle_lines_all_ended_sends_without_a_pause(dsn, connection):
    async with AsyncClient(job(), dsn, max_connections=8) as client:
        taken = [await client._pool._pool.getconn() for _ in range(8)]
        for one in taken:
            await client._pool._pool.putconn(one)
        assert end_client_lines(connection) == 8
        assert (await client.send("event", {})).jobs[0].outcome == "enqueued"
    assert len(runs(connection)) == 1
