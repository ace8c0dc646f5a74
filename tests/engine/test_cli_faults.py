"""What commands say where something is wrong: the spec, the schema, the address, the database."""

from __future__ import annotations

import secrets
from contextlib import nullcontext
from types import SimpleNamespace

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from clikit import EMAIL, JOBS, jobspec, send_email, stay_in
from enginekit import runs as all_runs
from jobspec_engine.cli import options

PASSWORD = "correct-horse-battery"  # noqa: S105  it opens nothing


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder that the commands run in."""
    stay_in(tmp_path, monkeypatch, {"jobs.yaml": JOBS, "broken.yaml": JOBS + "    retires: 3\n"})
    return tmp_path


@pytest.fixture
def run(folder, on_this_database):
    """Runs a command on this test's database."""
    return jobspec


VANDAL = """
import psycopg

def rename_queue(context):
    with psycopg.connect({dsn!r}) as connection:
        connection.execute("alter table jobspec.job_queue rename to gone")
"""
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


def test_a_worker_whose_tables_go_away_ends_with_one_error(run, folder, dsn):
    send_email()
    (folder / "vandal.py").write_text(VANDAL.format(dsn=dsn), encoding="utf-8")
    text = JOBS.replace("jobspec_engine.demo.handlers:send_email", "vandal:rename_queue")
    (folder / "jobs.yaml").write_text(text, encoding="utf-8")
    result = run("worker", "jobs.yaml", "--until-idle")
    assert result.exit_code == 1
    assert result.stderr.startswith('Error: relation "jobspec.job_queue" does not exist')


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        ("nowhere.to:find", "which is not there: install it, or start the worker in the folder"),
        ("json:nothing", "`json` has no `nothing`"),
        ("breaks:find", "importing `breaks` of handler `breaks:find` raised NameError"),
        ("json:__name__", "can't be called"),
        (None, "it has no handler; write `handler: module:function`"),
    ],
)
def test_a_worker_without_a_handler_claims_nothing(run, folder, connection, handler, problem):
    send_email()
    line = "    handler: jobspec_engine.demo.handlers:send_email\n"
    text = JOBS.replace(line, f"    handler: {handler}\n" if handler else "")
    (folder / "jobs.yaml").write_text(text, encoding="utf-8")
    (folder / "breaks.py").write_text("undefined", encoding="utf-8")
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
    said, advice = result.stderr.rpartition("Error: ")[2].splitlines()
    assert said.startswith("permission denied for table job_")
    assert "`grant jobspec_worker to app`" in advice
