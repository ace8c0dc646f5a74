"""The command `jobspec worker`: its options, and how it ends by signals."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from datetime import timedelta

import pytest

from clikit import JOBS, jobspec, send_email, stay_in
from databases import MEETING_TIMEOUT, PythonProcess
from enginekit import runs as all_runs
from jobspec_engine.cli.times import Length

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
COMMAND = "from jobspec.cli import main; main(prog_name='jobspec')"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder that the commands run in."""
    stay_in(
        tmp_path, monkeypatch, {"jobs.yaml": JOBS, "waiting.yaml": WAITING, "handlers.py": HANDLERS}
    )
    return tmp_path


@pytest.fixture
def run(folder, on_this_database):
    """Runs a command on this test's database."""
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


def said(process, text):
    """Wait until the worker has logged a line with this text."""
    assert any(text in line for line in iter(process.process.stderr.readline, ""))


def test_a_worker_until_idle_runs_what_is_due_and_ends(run, connection):
    send_email()
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
        assert (line["level"], "is at work on 1 job: " in line["message"]) == ("info", True)


def test_a_worker_says_at_its_start_which_jobs_it_works_on(run, caplog):
    assert run("worker", "jobs.yaml", "--until-idle", "--name", "blue").exit_code == 0
    jobs = "`email.send`, `system.code-graph-refresh`"
    assert f"worker blue is at work on 2 jobs: {jobs}" in caplog.messages


def test_of_many_jobs_a_worker_says_how_many_and_the_first_ten(run, tmp_path, caplog):
    job = "  - {{id: job-{:04}, triggers: [{{event: x}}], handler: handlers:wait}}\n"
    (tmp_path / "many.yaml").write_text("jobs:\n" + "".join(map(job.format, range(1_012))))
    options = ("--until-idle", "--name", "blue")
    assert run("worker", "many.yaml", *options).exit_code == 0
    ten = ", ".join(f"`job-000{number}`" for number in range(10))
    assert f"worker blue is at work on 1,012 jobs: {ten} and 1,002 more" in caplog.messages


def test_a_worker_logs_from_the_level_on_that_is_asked_for(run, dsn):
    with at_work(run, dsn, "--log-level", "debug") as process:
        process.tell("go on")
        said(process, "completed")
    with at_work(run, dsn, "--log-level", "warning") as process:
        process.process.send_signal(signal.SIGTERM)
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(MEETING_TIMEOUT) == 0
        assert process.process.stderr.read() == ""


def test_a_worker_goes_by_the_name_it_is_given(run, connection):
    send_email()
    assert run("worker", "jobs.yaml", "--until-idle", "--name", "blue").exit_code == 0
    assert all_runs(connection)[0].claimed_by == "blue"


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
    send_email()
    limit = ("--limit", "email.send=1")
    assert run("worker", "jobs.yaml", "--until-idle", *limit).exit_code == 0
    assert all_runs(connection)[0].state == "completed"
