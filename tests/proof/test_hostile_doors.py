"""Whatever comes in by a door is kept, or refused by a clear error; other runs never notice."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from click.testing import CliRunner

from enginekit import count, job, run_until_idle, runs
from jobspec import EventError
from jobspec.cli import main
from jobspec_engine import AsyncClient, Client, DeadLetters, EngineError, Event

HUGE = 100_000_000  # characters
NUL, HALF = "\0", "\ud800"
SQL_TEXT = "'; drop table jobspec.job_queue; -- %s %(x)s {schema}"
BOUNCE = {"job_key": "k", "job_key_mode": "debounce"}


def nested(depth):
    value = None
    for _ in range(depth):
        value = [value]
    return {"d": value}


# What is called, with what, and what is said of it.
REFUSED = {
    "cancel text": ("cancel", ["1"], {}, "must be a whole number, not str"),
    "cancel nothing": ("cancel", [None], {}, "not NoneType"),
    "cancel a truth": ("cancel", [True], {}, "not bool"),
    "cancel a fraction": ("cancel", [1.5], {}, "not float"),
    "replay text": ("replay", ["1; drop table x"], {}, "must be a whole number"),
    "replay many texts": ("replay_many", [["x"]], {}, "must be a whole number"),
    "replay of a job with U+0000": ("replay_many", [DeadLetters(job_id=NUL)], {}, "job_id holds"),
    "replay for half a pair": ("replay_many", [DeadLetters(reason=HALF)], {}, "reason holds half"),
    "cancel of a job with U+0000": ("cancel_by_key", [NUL], {"job_key": "k"}, "job_id holds"),
    "cancel of half a pair": ("cancel_by_key", [HALF], {"job_key": "k"}, "job_id holds half"),
    "cancel of a number": ("cancel_by_key", [1], {"job_key": "k"}, "job_id must be text"),
    "a key that is a number": ("cancel_by_key", ["job"], {"job_key": 1}, "key must be text"),
    "a key of half a pair": ("cancel_by_key", ["job"], {"idempotency_key": HALF}, "half a surr"),
    "pause U+0000": ("pause", [NUL], {}, r"job_id holds U\+0000"),
    "pause half a pair": ("pause", [HALF], {}, "job_id holds half a surrogate pair"),
    "resume U+0000": ("resume", [NUL], {}, r"job_id holds U\+0000"),
    "add a key that is a number": ("add_job", ["job"], {"job_key": 1}, "job_key must be text"),
    "add a truth as priority": ("add_job", ["job"], {"priority": True}, "priority must be"),
    "add a fraction as priority": ("add_job", ["job"], {"priority": 1.0}, "priority must be"),
    "add a huge priority": ("add_job", ["job"], {"priority": 1 << 70}, "priority must be"),
    "add huge attempts": ("add_job", ["job"], {"max_attempts": 1 << 70}, "max_attempts must be"),
    "add true attempts": ("add_job", ["job"], {"max_attempts": True}, "max_attempts must be"),
    "add for ever": ("add_job", ["job"], {"delay": timedelta.max}, "no longer than 36,500 days"),
    "add after a number": ("add_job", ["job"], {"delay": 5}, "delay must be a timedelta"),
    "add at a text": ("add_job", ["job"], {"run_at": "now"}, "run_at must be a datetime"),
    "add at the first time": (
        "add_job",
        ["job"],
        {"run_at": datetime.min.replace(tzinfo=UTC)},
        "years 1000 to 9998",
    ),
    "add at the last time": (
        "add_job",
        ["job"],
        {"run_at": datetime.max.replace(tzinfo=UTC)},
        "years 1000 to 9998",
    ),
    "put off for ever": (
        "add_job",
        ["job"],
        {**BOUNCE, "max_debounce": timedelta.max},
        "max_debounce must be no longer",
    ),
    "add 100 MB": ("add_job", ["job", {"x": "x" * HUGE}], {}, "16,777,216 can be kept"),
    "add 10,000 levels": ("add_job", ["job", nested(10_000)], {}, "nested too deeply"),
}


async def call(dsn, name, arguments, options):
    """Call a client of either kind, and return what each said or raised."""
    with Client(job(), dsn) as client:
        try:
            yield getattr(client, name)(*arguments, **options)
        except (EngineError, EventError) as error:
            yield error
    async with AsyncClient(job(), dsn) as client:
        try:
            yield await getattr(client, name)(*arguments, **options)
        except (EngineError, EventError) as error:
            yield error


@pytest.mark.parametrize("what", REFUSED)
async def test_a_client_refuses_what_can_not_be_and_writes_nothing(dsn, connection, what):
    name, arguments, options, said = REFUSED[what]
    async for error in call(dsn, name, arguments, options):
        assert isinstance(error, EngineError), error
        with pytest.raises(ValueError, match=said):
            raise error
    assert count(connection, "job_event") == count(connection, "job_pause") == 0


UNKNOWN = {
    "a number beyond 64 bits": ("cancel", [1 << 70], {}),
    "a number below all": ("cancel", [-1], {}),
    "a replay beyond 64 bits": ("replay", [1 << 70], {}),
}


@pytest.mark.parametrize("what", UNKNOWN)
async def test_a_run_that_there_can_not_be_is_unknown(dsn, what):
    async for told in call(dsn, *UNKNOWN[what]):
        assert told.outcome == "unknown"


KEYS = {"SQL": SQL_TEXT, "100 MB": "x" * HUGE, "odd": "\x7f\u2028🚀", "nothing": ""}


@pytest.mark.parametrize("what", KEYS)
async def test_a_key_of_any_size_and_content_is_found_again(dsn, what):
    text = KEYS[what]
    with Client(job(), dsn) as client:
        run_id = client.add_job("job", job_key=text).run_id
        assert client.cancel_by_key("job", job_key=text) == [(run_id, "cancelled")]


def test_one_id_twice_in_a_batch_is_one_event(dsn, connection):
    with Client(job(), dsn) as client:
        sent = client.send_many([Event("event", {"n": n}, "same") for n in range(2)])
    assert [one.jobs[0].outcome for one in sent] == ["enqueued", "duplicate"]
    assert len(runs(connection)) == 1


# By plain SQL comes what no client would send.
KEPT_BY_SQL = {
    "a number for a payload": "'job', '1'",
    "nothing for a payload": "'job', 'null'",
    "a list for a payload": "'job', '[]'",
    "names that are twice": """'job', '{"a": 1, "a": 2}'""",
    "3,000 levels": "'job', (repeat('[', 3000) || repeat(']', 3000))::json",
    "a number too long to print": """'job', ('{"n": ' || repeat('9', 5000) || '}')::json""",
    "30 MB": "'job', json_build_object('x', repeat('x', 30000000))",
    "half a pair": r"""'job', '{"x": "\ud800 \u0000"}'""",
    "the most attempts": "'job', max_attempts => 2147483647",
    "yesterday": "'job', delay => '-1 day'",
    "a time of long ago": "'job', run_at => '1000-01-01 00:00+00'",
    "a job that nobody has": "'nobody'",
    "a job of no name": "''",
    "a job named in SQL": "$$'; drop table jobspec.job_queue; --$$",
}


@pytest.mark.parametrize("what", KEPT_BY_SQL)
async def test_what_plain_sql_adds_harms_no_other_run(dsn, connection, what):
    compiled = job()
    connection.execute(f"select jobspec.add_job({KEPT_BY_SQL[what]})")
    with Client(compiled, dsn) as client:
        client.add_job("job", priority=5)
    await run_until_idle(compiled, dsn)
    assert runs(connection)[1].state == "completed"
    for command in ("runs", "events", "stats", "dead-letters"):
        result = CliRunner().invoke(main, [command, "--dsn", dsn])
        assert result.exit_code == 0, result.output


REFUSED_BY_SQL = {
    "the end of time": "'job', run_at => 'infinity'",
    "before all time": "'job', run_at => '-infinity'",
    "before our era": "'job', run_at => '4000-01-01 BC'",
    "a year of five digits": "'job', delay => '10000 years'",
    "a priority beyond 16 bits": "'job', priority => 99999",
    "no attempts": "'job', max_attempts => 0",
    "100,000 levels": "'job', (repeat('[', 100000) || repeat(']', 100000))::json",
    "no mode": "'job', job_key => 'k', job_key_mode => null",
    "no job": "null",
}


@pytest.mark.parametrize("what", REFUSED_BY_SQL)
def test_plain_sql_refuses_what_others_could_not_read(connection, what):
    with pytest.raises(psycopg.Error):
        connection.execute(f"select jobspec.add_job({REFUSED_BY_SQL[what]})")
    assert count(connection, "job_event") == 0


SPEC = "jobs: [{id: job, triggers: [{event: event}], handler: 'x:y'}]"
RAW = "\udcff"  # what Python makes of a byte that is no UTF-8, as a shell may pass it on
NUMBER = "9" * 20
COMMANDS = {
    "a run's number": (["run", NUMBER], None, 1, "there is no such run"),
    "a number to cancel": (["cancel", NUMBER], None, 1, "unknown"),
    "a number to replay": (["replay", NUMBER, "--jobs", "jobs.yaml"], None, 1, "unknown"),
    "a job's runs": (["runs", "--job", RAW], None, 1, "job_id holds half"),
    "events by name": (["events", "--name", RAW], None, 1, "name holds half"),
    "dead letters by job": (["dead-letters", "--job", RAW], None, 1, "job_id holds half"),
    "a job to pause": (["pause", RAW], None, 1, "job_id holds half"),
    "a job to resume": (["resume", RAW], None, 1, "job_id holds half"),
    "a schema": (["runs", "--schema", RAW], None, 2, "can not be printed"),
    "an event's name": (["send", RAW, "--jobs", "jobs.yaml"], None, 1, "event name holds half"),
    "10,000 levels": (
        ["send", "event", "-", "--jobs", "jobs.yaml"],
        '{"a": ' * 10_000,
        2,
        "nested too deep",
    ),
    "no UTF-8": (["send", "event", "-", "--jobs", "jobs.yaml"], b"\xff", 2, "DATA is not JSON"),
    "100 MB": (
        ["send", "event", "-", "--jobs", "jobs.yaml"],
        json.dumps({"x": "x" * HUGE}),
        1,
        "16,777,216 can be kept",
    ),
    "not a number": (
        ["send", "event", '{"a": NaN}', "--jobs", "jobs.yaml"],
        None,
        1,
        "event.data.a is nan",
    ),
    "too many digits": (
        ["send", "event", f'{{"a": {"9" * 5_000}}}', "--jobs", "jobs.yaml"],
        None,
        2,
        "DATA is not JSON: a number has 5,000 digits, and 4,300 can be read: line 1 column 7",
    ),
    "too many digits after such in a text": (
        ["send", "event", f'{{"{"9" * 5_000}\\"": 1e3,\n"a": {"-" + "9" * 5_000}}}'],
        None,
        2,
        "a number has 5,000 digits, and 4,300 can be read: line 2 column 6",
    ),
    "too many digits to replay": (
        ["replay", "1", "--jobs", "jobs.yaml", "--data", f'{{"a": {"9" * 5_000}}}'],
        None,
        2,
        "--data is not JSON: a number has 5,000 digits, and 4,300 can be read: line 1 column 7",
    ),
    "10,000 levels to replay": (
        ["replay", "1", "--jobs", "jobs.yaml", "--data", "[" * 10_000],
        None,
        2,
        "--data is not JSON",
    ),
    "a limit": (["runs", "--limit", NUMBER], None, 2, "not in the range"),
    "a time": (["events", "--since", "99999999999999d"], None, 2, "write `2h`"),
    "an age": (["prune", "--runs", "99999999999999d"], None, 2, "write `12h`"),
}


@pytest.mark.parametrize("what", COMMANDS)
def test_a_command_says_what_it_can_not_take_in_a_line(dsn, tmp_path, monkeypatch, what):
    arguments, given, code, said = COMMANDS[what]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.yaml").write_text(SPEC)
    result = CliRunner().invoke(main, arguments, input=given, env={"JOBSPEC_DSN": dsn})
    assert (result.exit_code, type(result.exception)) == (code, SystemExit)
    assert said in result.output
    assert "Traceback" not in result.output


UNREADABLE = {"levels": "[" * 5_000 + "]" * 5_000, "digits": "9" * 5_000}


@pytest.mark.parametrize("payload", UNREADABLE.values(), ids=UNREADABLE)
async def test_what_python_does_not_read_of_plain_sql_keeps_no_other_run_from_its_replay(
    dsn, connection, payload
):
    async def handler(context):
        raise ValueError(str(context.event.data))

    add = "select run_id from jobspec.add_job('job', %s::json, max_attempts => 1)"
    first, last = (connection.execute(add, [data]).fetchone()[0] for data in (payload, "{}"))
    compiled = job(handler=handler, retries=0)
    await run_until_idle(compiled, dsn)
    with Client(compiled, dsn) as client:
        told = client.replay_many(DeadLetters())
    assert [(one.run_id, one.outcome) for one in told] == [
        (first, "unresolved"),
        (last, "enqueued"),
    ]
    assert "can't be read" in told[0].reason
    for command in ("events --json", f"run {first}", f"run {first} --json"):
        result = CliRunner().invoke(main, [*command.split(), "--dsn", dsn])
        assert (result.exit_code, payload[:9] in result.output) == (0, True), command
