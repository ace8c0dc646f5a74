"""Sending inside the caller's own transaction, through the caller's own connection."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.rows import dict_row, namedtuple_row

from enginekit import EMAIL, count, job, jobs, run_of, runs, used_keys
from jobspec_engine import AsyncClient, Client, Event
from jobspec_engine.errors import MigrationError

BOTH = {"idempotency": "event.data.key", "debounce": {"period": "1m"}}
TABLES = ("job_event", "job_queue", "job_idempotency", "job_dead_letter")


@pytest.fixture
def client(dsn):
    compiled = jobs(
        both={"event": "both", **BOTH},
        once={"event": "once", "idempotency": "event.data.key"},
        broken={"event": "broken", "idempotency": "event.data.a + event.data.a"},
        plain={"event": "plain"},
    )
    with Client(compiled, dsn) as client:
        yield client


def send_all(client, connection):
    names = ("both", "once", "broken", "plain", "both", "once", "unheard")
    data = {"key": "k", "a": None}
    return client.send_many([Event(name, data) for name in names], connection=connection)


def rows(connection):
    return {table: count(connection, table) for table in TABLES}


KEPT = dict(zip(TABLES, (7, 4, 2, 1), strict=True))
NOTHING = dict.fromkeys(TABLES, 0)


def test_what_was_sent_in_a_transaction_shows_when_that_commits(client, dsn, connection):
    with psycopg.connect(dsn) as sending:
        send_all(client, sending)
        assert rows(connection) == NOTHING
        assert rows(sending) == KEPT
    assert rows(connection) == KEPT


def test_what_was_sent_in_a_transaction_is_gone_without_a_trace_when_that_rolls_back(
    client, dsn, connection
):
    with psycopg.connect(dsn) as sending:
        send_all(client, sending)
        sending.rollback()
    assert rows(connection) == NOTHING
    outcomes = [[one.outcome for one in sent.jobs] for sent in send_all(client, connection)]
    assert outcomes == [
        ["enqueued"],
        ["enqueued"],
        ["dead-letter"],
        ["enqueued"],
        ["duplicate"],
        ["duplicate"],
        [],
    ]


def test_a_send_shares_the_fate_of_the_caller_s_own_writes(client, dsn, connection):
    connection.execute("create table orders (id int primary key)")
    with psycopg.connect(dsn) as sending:
        sending.execute("insert into orders values (1)")
        client.send("once", {"key": 1}, connection=sending)
        with pytest.raises(psycopg.errors.UniqueViolation):
            sending.execute("insert into orders values (1)")
    assert count(connection, "job_queue") == 0


def test_a_savepoint_takes_back_only_what_was_sent_after_it(client, dsn, connection):
    with psycopg.connect(dsn) as sending:
        client.send("once", {"key": "a"}, connection=sending)
        with sending.transaction() as savepoint:
            client.send("once", {"key": "b"}, connection=sending)
            client.send("both", {"key": "a"}, connection=sending)
            raise psycopg.Rollback(savepoint)
        client.send("once", {"key": "c"}, connection=sending)
    assert list(used_keys(connection)) == ["a", "c"]
    assert len(runs(connection)) == 2


def test_a_refused_event_leaves_the_caller_s_transaction_usable(client, dsn, connection):
    with psycopg.connect(dsn) as sending:
        client.send("once", {"key": "a"}, connection=sending)
        with pytest.raises(ValueError, match="nan"):
            client.send("once", {"key": float("nan")}, connection=sending)
        client.send("once", {"key": "b"}, connection=sending)
    assert list(used_keys(connection)) == ["a", "b"]


def test_a_batch_with_a_refused_event_keeps_nothing(client, connection):
    with pytest.raises(ValueError, match="nan"):
        client.send_many([Event("plain", {}), Event("plain", {"x": float("nan")})])
    assert rows(connection) == NOTHING


def test_each_send_of_a_transaction_sees_those_before_it(client, dsn, connection):
    with psycopg.connect(dsn) as sending:
        first = client.send("both", {"key": "a"}, connection=sending).jobs[0]
        joined = client.send("both", {"key": "b"}, connection=sending).jobs[0]
        again = client.send("both", {"key": "b"}, connection=sending).jobs[0]
    assert [one.outcome for one in (first, joined, again)] == ["enqueued", "coalesced", "duplicate"]
    assert {one.run_id for one in (first, joined, again)} == {run_of(connection).id}


def test_a_send_in_a_long_transaction_arrives_when_it_is_sent(dsn, clock, connection):
    with Client(job(debounce={"period": "1m"}), dsn) as client, psycopg.connect(dsn) as sending:
        client.send("event", {}, connection=sending)
        later = clock.advance(30)
        (sent,) = client.send("event", {}, connection=sending).jobs
    assert (sent.run_at - later).total_seconds() == 60


@pytest.mark.parametrize("row_factory", [dict_row, namedtuple_row])
@pytest.mark.parametrize("cursor_factory", [psycopg.Cursor, psycopg.ClientCursor])
@pytest.mark.parametrize("autocommit", [True, False])
def test_a_connection_with_settings_of_its_own_serves(
    client, dsn, connection, row_factory, cursor_factory, autocommit
):
    with psycopg.connect(
        dsn, row_factory=row_factory, cursor_factory=cursor_factory, autocommit=autocommit
    ) as sending:
        sent = send_all(client, sending)
        assert sending.row_factory is row_factory
    assert [len(one.jobs) for one in sent] == [1, 1, 1, 1, 1, 1, 0]
    assert rows(connection) == KEPT


def test_a_connection_in_autocommit_keeps_all_of_a_batch_or_nothing(client, connection):
    connection.execute("alter table jobspec.job_idempotency drop column run_id cascade")
    with pytest.raises(MigrationError):
        send_all(client, connection)
    assert rows(connection) == NOTHING


@pytest.mark.parametrize("own_connection", [True, False])
def test_a_send_that_takes_two_statements_keeps_both_or_nothing(client, connection, own_connection):
    """The second lets a key name the run that its event joined; here it is refused."""
    (burst,) = client.send("both", {"key": "a"}).jobs
    before = rows(connection)
    connection.execute(
        f"alter table jobspec.job_idempotency add check (key = 'a' or run_id <> {burst.run_id})"
    )
    with pytest.raises(psycopg.errors.CheckViolation):
        client.send("both", {"key": "b"}, connection=None if own_connection else connection)
    assert rows(connection) == before
    assert run_of(connection).events == 1


def test_a_connection_looks_nowhere_but_in_the_engine_s_schema(client, dsn, connection):
    connection.execute("create schema other")
    connection.execute("create table other.job_queue (id int)")
    with psycopg.connect(dsn, options="-c search_path=other") as sending:
        send_all(client, sending)
    assert rows(connection) == KEPT


async def test_an_async_connection_serves_alike(dsn, connection):
    async with (
        AsyncClient(job("email.send", event="email.send", **EMAIL), dsn) as client,
        await AsyncConnection.connect(dsn, row_factory=dict_row) as sending,
    ):
        async with sending.transaction(force_rollback=True):
            await client.send("email.send", {"idempotencyKey": "a"}, connection=sending)
        async with sending.transaction():
            await client.send("email.send", {"idempotencyKey": "b"}, connection=sending)
            await client.send_many(
                [Event("email.send", {"idempotencyKey": key}) for key in "bc"],
                connection=sending,
            )
    assert {key: events for key, (_, events) in used_keys(connection).items()} == {"b": 2, "c": 1}


def test_a_connection_in_a_pipeline_of_the_caller_s_serves_alike(client, connection):
    with connection.pipeline():
        sent = send_all(client, connection)
        added = client.add_job("plain", {}, connection=connection)
        cancelled = client.cancel(added.run_id, connection=connection)
        by_key = client.cancel_by_key("once", idempotency_key="k", connection=connection)
    assert [len(one.jobs) for one in sent] == [1, 1, 1, 1, 1, 1, 0]
    assert [added.outcome, cancelled.outcome] == ["enqueued", "cancelled"]
    assert [one.outcome for one in by_key] == ["cancelled"]


async def test_an_async_connection_in_a_pipeline_serves_alike(dsn, connection):
    async with (
        AsyncClient(job(), dsn) as client,
        await AsyncConnection.connect(dsn, autocommit=True) as sending,
        sending.pipeline(),
    ):
        added = await client.add_job("job", {}, connection=sending)
        cancelled = await client.cancel(added.run_id, connection=sending)
    assert [added.outcome, cancelled.outcome] == ["enqueued", "cancelled"]
