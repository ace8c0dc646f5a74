"""The engine's commands as a person runs them: what they print, and their exit codes."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from types import SimpleNamespace

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import sql
from psycopg.conninfo import make_conninfo

from databases import MEETING_TIMEOUT, PythonProcess
from enginekit import runs as all_runs
from jobspec.cli import main
from jobspec_engine.cli import options
from jobspec_engine.cli.times import Length
from jobspec_engine.demo import play

JOBS = """
jobs:
  - id: email.send
    triggers: [{event: email.send}]
    handler: jobspec_engine.demo.handlers:send_email
    idempotency: event.data.key
  - id: system.code-graph-refresh
    triggers: [{event: github/push}]
    handler: jobspec_engine.demo.handlers:refresh_code_graph
    debounce: {key: event.data.repository, period: 2m, timeout: 15m}
"""
HANDLERS = """
import asyncio

async def wait(context):
    told = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, told.set)
    print("entered", flush=True)
    await told.wait()
    return "let through"
"""
WAITING = """
jobs:
  - {id: wait, triggers: [{event: wait}], handler: "handlers:wait"}
"""
EMAIL = '{"key": "welcome-42", "to": "ada@example.com"}'
PASSWORD = "correct-horse-battery"  # noqa: S105  it opens nothing
COMMAND = "from jobspec.cli import main; main(prog_name='jobspec')"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder that the commands run in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, text in (("jobs", JOBS), ("waiting", WAITING), ("broken", JOBS + "    retires: 3\n")):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "handlers.py").write_text(HANDLERS, encoding="utf-8")
    return tmp_path


def jobspec(*arguments, **options):
    """Run a command, which needs no database of its own."""
    return CliRunner().invoke(main, list(arguments), prog_name="jobspec", **options)


@pytest.fixture
def run(folder, dsn, monkeypatch):
    """Runs a command on this test's database."""
    monkeypatch.setenv("JOBSPEC_DSN", dsn)
    return jobspec


@pytest.fixture
def waiting_worker(run, dsn):
    """A worker in a process of its own, whose handler was entered and waits to be told."""
    with at_work(run, dsn) as process:
        yield process


@contextmanager
def at_work(run, dsn, *options):
    """Have a worker at work as `waiting_worker` does, with options."""
    assert run("send", "wait", "--jobs", "waiting.yaml").exit_code == 0
    environment = {**os.environ, "JOBSPEC_DSN": dsn}
    with PythonProcess(COMMAND, "worker", "waiting.yaml", *options, env=environment) as process:
        process.expect("entered")
        yield process


def send_email(run, *options):
    return run("send", "email.send", EMAIL, "--jobs", "jobs.yaml", *options)


def said(process, text):
    """Wait until the worker has logged a line with this text."""
    assert any(text in line for line in iter(process.process.stderr.readline, ""))


# --- migrate and drift


def test_migrating_makes_the_schema_and_migrating_again_changes_nothing(run, empty_dsn):
    first = run("migrate", "--dsn", empty_dsn)
    assert first.exit_code == 0
    assert first.stdout.startswith("applied 0001_init\n")
    again = run("migrate", "--dsn", empty_dsn)
    assert (again.exit_code, again.stdout) == (0, "schema jobspec is up to date\n")


def test_a_schema_of_another_name_is_made_and_used(run, empty_dsn):
    assert run("migrate", "--dsn", empty_dsn, "--schema", "other").exit_code == 0
    assert run("runs", "--dsn", empty_dsn, "--schema", "other").stdout == "no runs\n"


def test_a_migrated_schema_has_no_drift(run):
    result = run("drift")
    assert (result.exit_code, result.stdout) == (0, "schema jobspec: no drift\n")
    result = run("drift", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_drift_is_named_and_makes_the_exit_code_one(run, connection):
    connection.execute("alter table jobspec.job_event add column surprise int")
    result = run("drift")
    assert result.exit_code == 1
    assert "surprise" in result.stdout
    result = run("drift", "--json")
    assert result.exit_code == 1
    assert "surprise" in json.dumps(json.loads(result.stdout))


# --- send


def test_a_sent_event_is_told_for_each_job_it_starts(run, connection):
    result = send_email(run)
    assert result.exit_code == 0
    event, headings, row = result.stdout.splitlines()
    assert event.startswith("event ")
    assert headings.split() == ["job", "outcome", "run", "due"]
    (sent,) = all_runs(connection)
    assert row.split()[:3] == ["email.send", "enqueued", str(sent.id)]


def test_a_duplicate_names_the_run_of_the_first(run, connection):
    send_email(run)
    row = send_email(run).stdout.splitlines()[-1]
    (sent,) = all_runs(connection)
    assert row.split() == ["email.send", "duplicate", str(sent.id)]


def test_what_became_of_an_event_is_told_as_json(run, connection):
    sent = json.loads(send_email(run, "--json", "--id", "evt-1", "--ts", "5").stdout)
    (enqueued,) = all_runs(connection)
    (job,) = sent["jobs"]
    assert (sent["event_id"], job["outcome"], job["run_id"]) == ("evt-1", "enqueued", enqueued.id)
    assert connection.execute("select ts from jobspec.job_event").fetchone() == (5,)


def test_data_comes_from_standard_input(run, connection):
    result = run("send", "email.send", "-", "--jobs", "jobs.yaml", input=EMAIL)
    assert result.exit_code == 0
    assert connection.execute("select data->>'to' from jobspec.job_event").fetchone() == (
        "ada@example.com",
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("{", "DATA is not JSON"),
        ("[1]", "DATA must be a JSON object, such as"),
        ("[" * 100_000, "DATA is nested too deep"),
    ],
)
def test_data_that_is_not_a_json_object_is_misuse(run, connection, data, problem):
    result = run("send", "email.send", data, "--jobs", "jobs.yaml")
    assert result.exit_code == 2
    assert problem in result.stderr
    assert connection.execute("select count(*) from jobspec.job_event").fetchone() == (0,)


def test_standard_input_that_is_not_text_is_misuse(folder):
    result = jobspec("send", "email.send", "-", "--jobs", "jobs.yaml", input=b"\xff")
    assert result.exit_code == 2
    assert "DATA is not JSON" in result.stderr


def test_an_event_that_can_not_be_kept_is_refused_in_a_sentence(run):
    result = run("send", "x" * 2000, "--jobs", "jobs.yaml")
    assert result.exit_code == 1
    assert result.stderr == "Error: event name must have 1 to 1024 bytes, this has 2000\n"


def test_an_event_that_starts_no_job_says_which_events_do(run):
    result = run("send", "email.sned", "--jobs", "jobs.yaml")
    assert result.exit_code == 0
    assert result.stderr == (
        "no job has the trigger `email.sned`; there are `email.send`, `github/push`\n"
    )


def test_an_event_where_only_schedules_start_jobs_says_so(run, folder):
    spec = 'jobs: [{id: a, triggers: [{cron: "0 4 * * *"}], handler: "handlers:wait"}]'
    (folder / "cron.yaml").write_text(spec, encoding="utf-8")
    result = run("send", "nightly", "--jobs", "cron.yaml")
    assert result.stderr == "no job has the trigger `nightly`; no event starts any\n"


def test_sending_without_specs_is_misuse_that_names_the_option(folder):
    result = jobspec("send", "email.send", EMAIL)
    assert result.exit_code == 2
    assert "--jobs" in result.stderr


# --- runs


def test_runs_are_listed_newest_first(run):
    assert run("runs").stdout == "no runs\n"
    send_email(run)
    run("send", "github/push", '{"repository": "acme/web"}', "--jobs", "jobs.yaml")
    headings, newest, oldest = run("runs").stdout.splitlines()
    assert headings.split() == ["run", "job", "state", "attempt", "events", "when"]
    assert newest.split()[1:6] == ["system.code-graph-refresh", "pending", "0", "of", "5"]
    assert oldest.split()[1:3] == ["email.send", "pending"]


def test_runs_are_filtered_by_job_and_state_and_limited(run):
    for number in range(3):
        run("send", "github/push", f'{{"repository": "{number}"}}', "--jobs", "jobs.yaml")
    send_email(run)
    run("worker", "jobs.yaml", "--until-idle")

    def job_ids(*filters):
        return [row["job_id"] for row in json.loads(run("runs", "--json", *filters).stdout)]

    assert job_ids("--job", "email.send") == ["email.send"]
    assert job_ids("--state", "completed") == ["email.send"]
    assert job_ids("--state", "pending", "--limit", "2") == ["system.code-graph-refresh"] * 2
    assert job_ids("--job", "email.send", "--state", "pending") == []


def test_what_a_run_returned_is_a_value_in_json(run):
    send_email(run)
    run("worker", "jobs.yaml", "--until-idle")
    (told,) = json.loads(run("runs", "--json").stdout)
    whole = json.loads(run("run", str(told["run_id"]), "--json").stdout)
    assert told["result"] == whole["result"] == "sent to ada@example.com"


def test_why_a_run_failed_is_shown_as_it_was_said(run, folder):
    text = JOBS.replace("idempotency: event.data.key", "retries: 0")
    (folder / "jobs.yaml").write_text(text, encoding="utf-8")
    run("send", "email.send", '{"to[red]": ":x:"}', "--jobs", "jobs.yaml")
    assert run("worker", "jobs.yaml", "--until-idle").exit_code == 0
    headings, row = run("runs").stdout.splitlines()
    assert headings.split()[-1] == "why"
    assert row.rstrip().endswith("KeyError: 'to'")


def test_a_message_is_not_read_as_markup(run, connection, folder):
    text = 'async def fail(context):\n    raise ValueError("[red]:x: no[/nope]")\n'
    (folder / "failing_handlers.py").write_text(text, encoding="utf-8")
    spec = (
        "jobs: [{id: fail, retries: 0, triggers: [{event: fail}], handler: failing_handlers:fail}]"
    )
    (folder / "fail.yaml").write_text(spec, encoding="utf-8")
    run("send", "fail", "--jobs", "fail.yaml")
    run("worker", "fail.yaml", "--until-idle")
    assert "ValueError: [red]:x: no[/nope]" in run("runs").stdout


# --- worker


def test_a_worker_until_idle_runs_what_is_due_and_ends(run, connection):
    send_email(run)
    assert run("worker", "jobs.yaml", "--until-idle").exit_code == 0
    (ended,) = all_runs(connection)
    assert (ended.state, ended.result) == ("completed", "sent to ada@example.com")


def test_the_first_sigterm_lets_the_running_run_end(waiting_worker, connection):
    waiting_worker.process.send_signal(signal.SIGTERM)
    said(waiting_worker, "letting the running runs end")
    waiting_worker.tell("go on")
    waiting_worker.end()
    (ended,) = all_runs(connection)
    assert (ended.state, ended.result) == ("completed", "let through")


def test_the_second_sigterm_gives_the_running_run_back(waiting_worker, connection):
    waiting_worker.process.send_signal(signal.SIGTERM)
    said(waiting_worker, "letting the running runs end")
    waiting_worker.process.send_signal(signal.SIGTERM)
    assert waiting_worker.process.wait(MEETING_TIMEOUT) == 0
    (back,) = all_runs(connection)
    assert (back.state, back.attempt) == ("pending", 0)


def test_a_run_that_has_not_ended_within_the_grace_period_is_given_back(run, dsn, connection):
    with at_work(run, dsn, "--grace", "0.1s") as process:
        process.process.send_signal(signal.SIGTERM)
        said(process, "giving the running runs back")
        assert process.process.wait(MEETING_TIMEOUT) == 0
    (back,) = all_runs(connection)
    assert (back.state, back.attempt) == ("pending", 0)


def test_a_worker_logs_json_where_that_is_asked_for(run, dsn):
    with at_work(run, dsn, "--log-format", "json") as process:
        line = json.loads(process.process.stderr.readline())
        assert (line["level"], line["message"].endswith("is at work")) == ("info", True)


@pytest.mark.parametrize("limit", ["email.send", "=3", "email.send=many", "no.such.job=3"])
def test_a_limit_that_can_not_be_meant_is_refused(run, limit):
    result = run("worker", "jobs.yaml", "--until-idle", "--limit", limit)
    assert result.exit_code != 0
    assert "email.send=3" in result.stderr or "no.such.job" in result.stderr


@pytest.mark.parametrize(
    ("text", "length"),
    [("5s", 5), ("1.5s", 1.5), ("2m", 120), ("1h", 3600), ("30", 30), ("0.5", 0.5)],
)
def test_a_time_of_a_worker_is_written_as_others_are(text, length):
    assert Length(timedelta(0)).convert(text, None, None) == timedelta(seconds=length)


@pytest.mark.parametrize(
    ("lease", "problem"),
    [
        ("soon", "write a length of time, such as `30s` or `2m`"),
        ("-5s", "write a length of time, such as `30s` or `2m`"),
        ("1d", "write a length of time, such as `30s` or `2m`"),
        ("0.1s", "write `0.5s` or more"),
    ],
)
def test_a_lease_that_can_not_be_meant_is_refused(run, lease, problem):
    result = run("worker", "jobs.yaml", "--lease", lease)
    assert (result.exit_code, problem in result.stderr) == (2, True)


def test_a_limit_is_taken(run, connection):
    send_email(run)
    limit = ("--limit", "email.send=1")
    assert run("worker", "jobs.yaml", "--until-idle", *limit).exit_code == 0
    assert all_runs(connection)[0].state == "completed"


# --- what goes wrong


COMMANDS = [
    ["migrate"],
    ["drift"],
    ["runs"],
    ["worker", "jobs.yaml", "--until-idle"],
    ["send", "email.send", EMAIL, "--jobs", "jobs.yaml"],
    ["demo"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_database_out_of_reach_is_said_without_the_password(folder, command):
    result = jobspec(*command, "--dsn", f"postgresql://ada:{PASSWORD}@127.0.0.1:1/app")
    assert result.exit_code == 1
    assert "Connection refused" in result.stderr
    assert "--dsn or JOBSPEC_DSN" in result.stderr
    assert PASSWORD not in result.output


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_no_command_prints_the_password(run, dsn, command):
    result = run(*command, env={"JOBSPEC_DSN": make_conninfo(dsn, password=PASSWORD)})
    assert result.exit_code == 0
    assert PASSWORD not in result.output


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://ada:{PASSWORD}@more@127.0.0.1/app",
        f"postgresql://ada:{PASSWORD}/more@127.0.0.1/app",
        f"postgresql://ada:{PASSWORD} more@127.0.0.1/app",
        f"postgresql://127.0.0.1/app?pasword={PASSWORD}",
        f"postgresql://127.0.0.1/app?{PASSWORD}",
        f"host=127.0.0.1 password='{PASSWORD}",
        PASSWORD,
    ],
)
def test_an_address_that_can_not_be_read_is_misuse_and_not_repeated(folder, dsn):
    result = jobspec("runs", "--dsn", dsn)
    assert result.exit_code == 2
    assert "write postgresql://user:password@host:5432/database" in result.stderr
    assert PASSWORD not in result.output
    assert "more" not in result.output


@pytest.mark.parametrize("command", [COMMANDS[number] for number in (1, 2, 3, 4)])
def test_a_schema_that_is_not_migrated_is_not_touched(run, empty_dsn, command):
    result = run(*command, "--dsn", empty_dsn)
    assert result.exit_code == 1
    assert "schema `jobspec` lacks the migrations 0001_init" in result.stderr
    assert "run `jobspec migrate` with the same --dsn and --schema" in result.stderr
    with psycopg.connect(empty_dsn) as connection:
        found = connection.execute("select to_regnamespace('jobspec')").fetchone()
    assert found == (None,)


@pytest.fixture
def on_bundled(folder, empty_dsn, monkeypatch, tmp_path):
    """An empty database that commands take for that of the bundled Postgres."""
    running = SimpleNamespace(dsn=empty_dsn, data_dir=tmp_path / "data")
    monkeypatch.setattr(options, "EmbeddedPostgres", lambda: nullcontext(running))
    monkeypatch.delenv("JOBSPEC_DSN", raising=False)
    return empty_dsn


@pytest.mark.parametrize(
    "command",
    [
        ["runs"],
        ["run", "1"],
        ["drift"],
        ["events"],
        ["stats"],
        ["prune"],
        ["pause", "job"],
        ["cancel", "1"],
        ["dead-letters"],
        ["replay", "1", "--jobs", "jobs.yaml"],
    ],
)
def test_a_command_that_looks_makes_no_schema_on_the_bundled_postgres(on_bundled, command):
    result = jobspec(*command, "--schema", "jobspce")
    assert result.exit_code == 1
    assert "schema `jobspce` lacks the migrations 0001_init" in result.stderr
    assert "run `jobspec migrate`" in result.stderr
    with psycopg.connect(on_bundled) as connection:
        assert connection.execute("select to_regnamespace('jobspce')").fetchone() == (None,)


@pytest.mark.parametrize("command", [COMMANDS[number] for number in (0, 3, 4)])
def test_a_command_that_starts_work_makes_its_schema_on_the_bundled_postgres(on_bundled, command):
    assert jobspec(*command, "--schema", "mine").exit_code == 0
    assert jobspec("drift", "--schema", "mine").exit_code == 0


def test_a_database_of_another_build_says_what_its_user_can_do(on_bundled, tmp_path):
    assert jobspec("migrate").exit_code == 0
    with psycopg.connect(on_bundled) as connection:
        connection.execute("update jobspec.migration set digest = 'other'")
    for command in (["migrate"], ["runs"]):
        result = jobspec(*command)
        assert result.exit_code == 1
        assert "this database was migrated by another build of jobspec. Use that" in result.stderr
        assert f"Or remove {tmp_path / 'data'}" in result.stderr
    on_own = jobspec("runs", "--dsn", on_bundled)
    assert "drop the schema" in on_own.stderr
    assert "Or remove" not in on_own.stderr


@pytest.mark.parametrize("name", ["", "pg_jobs", "a$b", "x" * 64])
def test_a_schema_name_that_postgres_can_not_take_is_misuse(folder, name):
    result = jobspec("runs", "--schema", name)
    assert result.exit_code == 2
    assert "can not be the name of a schema" in result.stderr


@pytest.mark.parametrize(
    "command", [["worker", "broken.yaml"], ["send", "email.send", "--jobs", "broken.yaml"]]
)
def test_a_broken_spec_is_shown_as_a_check_shows_it(folder, command):
    checked = jobspec("check", "broken.yaml").stdout.splitlines()
    result = jobspec(*command)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == checked[:-1]
    assert checked[0].startswith("error[JS301]: `retires` is not a field")


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        ("nowhere.to:find", "which is not there: install it, or start the worker in the folder"),
        ("json:nothing", "`json` has no `nothing`"),
        ("json:__name__", "can't be called"),
        (None, "it has no handler; write `handler: module:function`"),
    ],
)
def test_a_worker_without_a_handler_claims_nothing(run, folder, connection, handler, problem):
    send_email(run)
    line = "    handler: jobspec_engine.demo.handlers:send_email\n"
    text = JOBS.replace(line, f"    handler: {handler}\n" if handler else "")
    (folder / "jobs.yaml").write_text(text, encoding="utf-8")
    result = run("worker", "jobs.yaml", "--until-idle")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: job `email.send`: ")
    assert problem in result.stderr
    assert [one.state for one in all_runs(connection)] == ["pending"]


@pytest.mark.parametrize("command", [["worker"], ["send", "email.send", "--jobs"]])
def test_an_option_that_the_engine_can_not_honour_is_refused_by_name(run, folder, command):
    text = JOBS.replace("idempotency: event.data.key", "throttle: {limit: 1, period: 1m}")
    (folder / "jobs.yaml").write_text(text, encoding="utf-8")
    result = run(*command, "jobs.yaml")
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: the engine can't honour `throttle` of job `email.send`: "
        "remove it, or run this job on Inngest\n"
    )


@pytest.fixture
def poor_dsn(databases, dsn):
    """The database for a role that may look at the migrations, and at nothing else."""
    role = f"jobspec_test_{secrets.token_hex(6)}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        for text in (
            "create role {}",
            "grant usage on schema jobspec to {}",
            "grant select on jobspec.migration to {}",
        ):
            connection.execute(sql.SQL(text).format(sql.Identifier(role)))
        yield make_conninfo(dsn, options=f"-c role={role}")
        for text in ("drop owned by {}", "drop role {}"):
            connection.execute(sql.SQL(text).format(sql.Identifier(role)))


@pytest.mark.parametrize("command", COMMANDS[2:5], ids=lambda command: command[0])
def test_what_the_database_refuses_is_said_in_its_words(run, poor_dsn, command):
    result = run(*command, "--dsn", poor_dsn)
    assert result.exit_code == 1
    assert result.stderr.rpartition("Error: ")[2].startswith("permission denied for table job_")


def test_the_demo_says_the_same_as_it_is_played(run):
    result = run("demo")
    assert result.exit_code == 0
    assert f"from {play.SENDERS} senders" in result.stdout
    assert "49  coalesced" in result.stdout
