"""What sends cost, counted: ways to the database and back, of which each is a commit."""

from __future__ import annotations

import asyncio
import threading

import pytest

from enginekit import PATIENCE, SQL, count, jobs
from jobspec_engine import AsyncClient, Client, Event
from jobspec_engine.batch import exchange, prepare
from jobspec_engine.bulk import Bulk
from jobspec_engine.events import new_ids
from jobspec_engine.rows import SentPlainRow

COMPILED = jobs(
    plain={"event": "plain"},
    once={"event": "once", "idempotency": "event.data.key"},
    later={"event": "later", "debounce": {"key": "event.data.key", "period": "1m"}},
    first={"event": "of two kinds"},
    second={"event": "of two kinds", "debounce": {"key": "event.data.key", "period": "1m"}},
    both={
        "event": "both",
        "idempotency": "event.data.key",
        "debounce": {"key": "event.data.key", "period": "1m"},
    },
)
NAMES = ("plain", "once", "later")


class Trips:
    """Counts ways to the database as libpq traces them: each is a Query or ends with a Sync."""

    def __init__(self, path):
        self._path = path
        self._file = path.open("wb", buffering=0)

    def follow(self, connection):
        connection.pgconn.trace(self._file.fileno())

    def taken(self):
        """Return how many were taken since the last call."""
        lines = self._path.read_text().splitlines()
        self._file.truncate(0)
        self._file.seek(0)
        return sum(line.split("\t")[1:4:2] in (["F", "Query"], ["F", "Sync"]) for line in lines)


@pytest.fixture
def trips(tmp_path):
    trips = Trips(tmp_path / "trace")
    yield trips
    trips._file.close()


def send_alone(client, name):
    return client.send(name, {"key": 1})


def send_few(client, name):
    return client.send_many([Event(name, {"key": n}) for n in range(50)])


def register_worker(connection):
    """Have the database know a worker, which may sleep."""
    connection.execute(
        "insert into jobspec.job_worker values (gen_random_uuid(), 'asleep', '{}', now(), now())"
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("send", [send_alone, send_few])
def test_a_send_is_one_way_there_and_back(dsn, trips, name, send):
    with Client(COMPILED, dsn, max_connections=1) as client:
        with client._pool._pool.connection() as own:
            trips.follow(own)
        send(client, name)
        assert trips.taken() == 1


@pytest.mark.parametrize("name", NAMES)
async def test_sends_at_the_same_time_are_one_way_there_and_back(dsn, trips, name, connection):
    async with AsyncClient(COMPILED, dsn, max_connections=1) as client:
        async with client._pool._pool.connection() as own:
            trips.follow(own)
        await asyncio.gather(*(client.send(name, {"key": n}) for n in range(50)))
        assert trips.taken() == 1
        await client.send(name, {"key": 1})
        assert trips.taken() == 1
    assert count(connection, "job_event") == 51


@pytest.mark.parametrize(
    ("names", "statement"),
    [
        (["plain"], "send_new"),
        (["once"], "send_idempotent"),
        (["plain", "once"], "send_idempotent"),
        (["later"], "send_debounced"),
        (["plain", "later"], "send"),
        (["once", "later"], "send"),
        (["both"], "send"),
    ],
)
def test_sends_are_by_the_smallest_statement_that_does(names, statement):
    batch = [prepare(Event(name, {"key": 1}), COMPILED) for name in names]
    call = next(exchange(batch, SQL))
    assert call.query == SQL._queries[statement]


@pytest.mark.parametrize(
    ("event", "again", "statement"),
    [
        (Event("plain", {}), False, "send_new"),
        (Event("plain", {}), True, "send_plain"),  # it may be there
        (Event("plain", {}, id="named"), False, "send_plain"),
        (Event("plain", {}, ts=1), False, "send_plain"),
    ],
)
def test_only_events_that_nobody_sent_before_are_written_without_a_look_for_them(
    event, again, statement
):
    call = next(exchange([prepare(event, COMPILED)], SQL, again=again))
    assert call.query == SQL._queries[statement]


@pytest.mark.parametrize("name", [*NAMES, "both", "of two kinds"])
def test_a_client_has_its_statement_planned_once_when_it_sends_for_the_third_time(dsn, name):
    """Postgres would plan what was prepared anew for five sends, and perhaps for each."""
    with Client(COMPILED, dsn, max_connections=1) as client:
        for n in range(30):
            client.send(name, {"key": n})
        with client._pool._pool.connection() as own:
            plans = own.execute(
                "select custom_plans, generic_plans from pg_prepared_statements"
                " where name like 'jobspec%'"
            ).fetchall()
    assert plans == [(0, 28)]


def test_a_bulk_is_a_way_there_for_each_thousand_and_for_its_transaction(dsn, trips):
    """And one to have its statement prepared."""
    with Client(COMPILED, dsn, max_connections=1) as client:
        with client._pool._pool.connection() as own:
            trips.follow(own)
        client.send_many([Event("plain", {}) for _ in range(3_500)])
        assert trips.taken() == 4 + 2 + 1


def test_the_ids_of_a_bulk_are_in_the_order_of_its_events():
    """So each is written behind the last one in an index, and not between others."""
    ids = new_ids(1_000)
    assert ids == sorted(set(ids))


def test_a_bulk_asks_once_for_the_trace_that_it_is_sent_in(monkeypatch):
    asked = []
    monkeypatch.setattr("jobspec_engine.bulk.carried", lambda: asked.append("trace"))
    Bulk([Event("plain", {}) for _ in range(3)], COMPILED, SQL)
    assert asked == ["trace"]


def test_a_bulk_of_large_events_is_sent_by_fewer_at_a_time(dsn, trips, monkeypatch):
    monkeypatch.setattr("jobspec_engine.bulk.MOST_CHARACTERS", 2_000)
    with Client(COMPILED, dsn, max_connections=1) as client:
        with client._pool._pool.connection() as own:
            trips.follow(own)
        sent = client.send_many([Event("plain", {"text": "x" * 900}) for _ in range(7)])
        assert trips.taken() == 3 + 2 + 1
    assert len({one.event_id for one in sent}) == 7


async def test_large_events_that_are_sent_at_the_same_time_go_by_fewer(dsn, trips, monkeypatch):
    monkeypatch.setattr("jobspec_engine.coalesce.MOST_CHARACTERS", 2_000)
    async with AsyncClient(COMPILED, dsn, max_connections=1) as client:
        async with client._pool._pool.connection() as own:
            trips.follow(own)
        await asyncio.gather(*(client.send("plain", {"text": "x" * 900}) for _ in range(7)))
        assert trips.taken() == 4 + 1


def test_a_bulk_makes_and_tells_nothing_while_the_database_waits(monkeypatch):
    """What it makes of the next events is ready to be sent when the last ones are there."""
    calls = Bulk([Event("plain", {})] * 2_500, COMPILED, SQL).send(tries=1)
    call = next(calls)
    for _ in range(2):
        call.meanwhile()
        with monkeypatch.context() as stopped:
            for made in ("bulk.prepare", "batch.Sent", "batch.Dispatched", "arrays._HEADER"):
                stopped.delattr(f"jobspec_engine.{made}")
            numbers = list(range(1_000))
            call = calls.send([SentPlainRow._make([False, False, None, numbers, numbers])])
    assert len(call.params["event_ids"]) == 500


def test_a_worker_is_woken_behind_the_answer(dsn, connection, monkeypatch):
    register_worker(connection)
    answered, given = threading.Event(), []
    with Client(COMPILED, dsn) as client:
        wake = client._wake._wake
        monkeypatch.setattr(
            client._wake, "_wake", lambda: given.append(answered.wait(PATIENCE) and wake())
        )
        client.send("plain", {})
        answered.set()
    assert len(given) == 1


async def test_workers_are_woken_once_for_many_sends(dsn, connection, trips):
    register_worker(connection)
    async with AsyncClient(COMPILED, dsn, max_connections=1) as client:
        async with client._pool._pool.connection() as own:
            trips.follow(own)
        await asyncio.gather(*(client.send("plain", {"key": n}) for n in range(50)))
        await client._wake.join()
        assert trips.taken() == 2
