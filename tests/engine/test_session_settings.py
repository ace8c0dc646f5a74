"""Whatever a role or a database sets for its sessions, events are sent and runs are run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.conninfo import make_conninfo

from enginekit import jobs, run_until_idle, send
from jobspec.cli import main
from jobspec_engine import AsyncClient, Client, RetryAfter
from jobspec_engine.database import connection_settings, set_up_session, set_up_session_async
from jobspec_engine.errors import ArgumentError
from jobspec_engine.testing.databases import Clock

SETTINGS = (
    "DateStyle = 'German'",
    "DateStyle = 'SQL, DMY'",
    "IntervalStyle = 'sql_standard'",
    "IntervalStyle = 'iso_8601'",
    "bytea_output = 'escape'",
    "client_encoding = 'LATIN1'",
    "client_encoding = 'SQL_ASCII'",
    "standard_conforming_strings = off",
    "quote_all_identifiers = on",
    "default_transaction_isolation = 'repeatable read'",
    "default_transaction_isolation = 'serializable'",
    "search_path = ''",
    "TimeZone = '<+05>-5:30'",
    "statement_timeout = '10s'",
)

TEXT = "ü ☃ \0 \ud83d\ude00"


async def echo(context):
    return context.event.data


async def asks(context):
    answer = await context.step.wait_for_event(
        "answer", match={"data.kind": "ü"}, timeout=timedelta(minutes=1)
    )
    return answer.data if answer else None


async def fails(context):
    raise ValueError(TEXT)


def compiled():
    return jobs(
        asks={"event": "question", "handler": asks},
        bounced={
            "event": "bounced",
            "handler": echo,
            "debounce": {"key": "event.data.text", "period": "1h", "timeout": "1d"},
            "idempotency": {"key": "event.data.text", "window": "1h"},
        },
        fails={"event": "failure", "handler": fails, "retries": 0},
        plain={"event": "plain", "handler": echo},
    )


@pytest.fixture
def set_for_all(databases, template):
    """Make a database of its own whose sessions begin with a setting; give its address."""
    name, dsn = databases.create(template)

    def set_it(setting):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f'alter database "{name}" set {setting}')
        return dsn

    yield set_it
    databases.drop(name)


@pytest.mark.parametrize("setting", SETTINGS)
async def test_a_setting_of_a_database_changes_nothing_for_clients_workers_and_commands(
    set_for_all, setting
):
    dsn, set_up, data = set_for_all(setting), compiled(), {"text": TEXT, "kind": "ü"}
    with Client(set_up, dsn) as client:
        sent = client.send("bounced", data).jobs[0]
        again = client.send("bounced", data).jobs[0]
        assert (again.outcome, again.run_id, sent.run_at is None) == (
            "duplicate",
            sent.run_id,
            False,
        )
        added = client.add_job("plain", data, job_key="ü☃", delay=timedelta(days=1))
        assert client.add_job("plain", data, job_key="ü☃").run_id == added.run_id
        asking = client.send("question", data).jobs[0].run_id
        failing = client.send("failure", data).jobs[0].run_id
        await run_until_idle(set_up, dsn)
        client.send("answer", data)
        await run_until_idle(set_up, dsn)
        assert client.replay(failing).outcome == "enqueued"
    for command in ("runs", f"run {asking}", "events", "dead-letters", "stats", "drift"):
        told = CliRunner().invoke(main, [*command.split(), "--dsn", dsn])
        assert told.exit_code == 0, told.output
    with psycopg.connect(make_conninfo(dsn, client_encoding="utf8")) as connection:
        states = "select state, count(*)::int from jobspec.job_queue group by state"
        found = dict(connection.execute(states).fetchall())
        assert found == {"completed": 2, "failed": 1, "pending": 2}


@pytest.mark.parametrize("setting", SETTINGS[:6])
async def test_nor_for_events_that_are_sent_on_a_connection_of_the_caller_s(set_for_all, setting):
    dsn, set_up = set_for_all(setting), compiled()
    async with (
        AsyncClient(set_up, dsn) as client,
        await psycopg.AsyncConnection.connect(dsn) as connection,
    ):
        sent = await client.send("bounced", {"text": "ü"}, connection=connection)
    assert (sent.jobs[0].outcome, sent.jobs[0].run_at is None) == ("enqueued", False)


async def test_a_connection_on_which_no_text_can_be_read_is_refused(dsn, connection):
    connection.execute("set client_encoding = 'SQL_ASCII'")
    with Client(compiled(), dsn) as client, pytest.raises(ArgumentError, match="utf8"):
        client.send("plain", {}, connection=connection)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_lines_of_ours_see_what_is_committed_whatever_is_set(set_for_all, level):
    """Else a renewal that meets another write fails, and leases run out under load."""
    dsn = set_for_all(f"default_transaction_isolation = '{level}'")
    settings, asked = connection_settings(dsn, "test"), "show transaction_isolation"
    with psycopg.connect(dsn, **settings) as ours:
        set_up_session(ours)
        assert ours.execute(asked).fetchone() == ("read committed",)
    async with await psycopg.AsyncConnection.connect(dsn, **settings) as ours:
        await set_up_session_async(ours)
        assert await (await ours.execute(asked)).fetchone() == ("read committed",)


DAY = timedelta(days=1)
BEFORE_SUMMER_TIME = datetime(2026, 3, 28, 12, tzinfo=UTC)


@pytest.mark.parametrize("given", [False, True])
def test_a_day_has_24_hours_where_summer_time_begins(set_for_all, given):
    dsn = set_for_all("TimeZone = 'Europe/Berlin'")
    set_up = jobs(
        late={"event": "late", "debounce": {"period": "1d", "timeout": "2d"}},
        once={"event": "once", "idempotency": {"key": "event.data.key", "window": "1d"}},
    )
    with (
        Clock(dsn) as clock,
        Client(set_up, dsn) as client,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        clock.set(BEFORE_SUMMER_TIME)
        on = {"connection": connection} if given else {}
        due = [
            client.send("late", {}, **on).jobs[0].run_at,
            client.add_job("once", delay=DAY, **on).run_at,
        ]
        client.send("once", {"key": "k"}, **on)
        due += connection.execute("select expires_at from jobspec.job_idempotency").fetchone()
    assert [one.astimezone(UTC) - BEFORE_SUMMER_TIME for one in due] == [DAY] * 3


async def sleeps(context):
    await context.step.sleep("a day", DAY)


async def puts_off(context):
    raise RetryAfter(DAY)


@pytest.mark.parametrize("handler", [sleeps, puts_off])
@pytest.mark.parametrize("how_many", [1, 3])
async def test_nor_has_one_that_a_run_waits_for_another_length(set_for_all, handler, how_many):
    """One memo is kept by another statement than several."""
    dsn = set_for_all("TimeZone = 'Europe/Berlin'")
    set_up = jobs(job={"event": "event", "handler": handler})
    with Clock(dsn) as clock, psycopg.connect(dsn, autocommit=True) as connection:
        clock.set(BEFORE_SUMMER_TIME)
        send(dsn, set_up, *[{}] * how_many)
        await run_until_idle(set_up, dsn)
        waiting = connection.execute("select run_at from jobspec.job_queue").fetchall()
    assert [due.astimezone(UTC) - BEFORE_SUMMER_TIME for (due,) in waiting] == [DAY] * how_many
