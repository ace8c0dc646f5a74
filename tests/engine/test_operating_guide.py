"""The pages about schedules, retention and operations say what is so."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

import jobspec
from databases import PythonProcess
from enginekit import job
from jobspec.cli import main
from jobspec_engine import Client, Retention, cron, doctor, stats
from jobspec_engine.migrate import NAME_LIMIT
from jobspec_engine.target import require_supported

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
CRON, RETENTION, OPERATIONS = (
    (GUIDE / f"{name}.md").read_text(encoding="utf-8")
    for name in ("cron", "retention", "operations")
)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = [
    line.removeprefix("jobspec ")
    for page in (CRON, RETENTION, OPERATIONS)
    for language, block in FENCED.findall(page)
    if not language
    for line in block.splitlines()
]


def test_the_schedule_of_the_page_is_one_that_the_engine_takes():
    (spec,) = (block for language, block in FENCED.findall(CRON) if language == "yaml")
    compiled = jobspec.compile(spec)
    require_supported(compiled)
    (trigger,) = compiled["report.daily"].triggers
    assert (trigger.jitter, trigger.missed) == (timedelta(minutes=5), "once")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_pages_runs(dsn, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.yaml").write_text(
        "jobs: [{id: a, triggers: [a], handler: jobspec_engine.demo.handlers:send_email}]"
    )
    monkeypatch.setenv("JOBSPEC_DSN", dsn)
    with Client(job(), dsn) as client:
        client.send("event", {})
    with psycopg.connect(dsn) as connection:  # a job that is to be paused is one that has runs
        connection.execute("select jobspec.add_job('report.daily')")
    if "--schema billing" in command:
        monkeypatch.setenv("JOBSPEC_SCHEMA", "billing")
        CliRunner().invoke(main, ["migrate"])
    if command.startswith("worker"):
        code = "from jobspec.cli import main; main()"
        with PythonProcess(code, *command.split(), "--until-idle") as worker:
            worker.end()
        return
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 0, result.output


def test_the_figures_of_the_pages_are_those_of_the_code():
    default = Retention()
    assert default.dead_letters == timedelta(days=90)
    assert default.runs == default.events == timedelta(days=30)
    assert default.batch == 1000
    assert (100, timedelta(days=7)) == (cron.MOST_MISSED, cron.OLDEST_MISSED)
    assert timedelta(minutes=1) == cron.ON_TIME == doctor.IDLE == doctor.UNCLAIMED
    assert (timedelta(minutes=10), timedelta(minutes=5)) == (doctor.LONG, doctor.LATE)
    assert (doctor.DEAD_ROWS, doctor.DEAD_SHARE, doctor.FAR) == (10_000, 0.2, 1_000_000)
    assert (timedelta(seconds=2), 14) == (doctor.CLOCK_DIFFERENCE, doctor.OLDEST_SERVER)
    assert (stats.LIMIT, NAME_LIMIT) == (100_000, 56)


def test_every_metric_and_every_check_is_told(dsn):
    told = re.findall(r"^\| `?([a-z_ ]+)`? \|", OPERATIONS, re.MULTILINE)
    assert {f"jobspec_{name}" for name in stats.METRICS} <= set(told)
    assert {one.check for one in doctor.examine(dsn)} <= set(told)
