"""The page about adding jobs says what is so."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import get_args

import psycopg
import pytest

import jobspec
from enginekit import runs
from jobspec_engine import Client
from jobspec_engine.add_job import AddJobOptions, JobKeyMode
from jobspec_engine.target import require_supported

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "adding-jobs.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(SPEC,) = (block for language, block in BLOCKS if language == "yaml")
ADDING, KEYED = (block for language, block in BLOCKS if language == "python")
CALLS, TRIGGER = (block for language, block in BLOCKS if language == "sql")
TIMES = [
    (int(called), int(due))
    for called, due in re.findall(r"^\| (\d+) s \| (\d+) s\b", PAGE, re.MULTILINE)
]
JOBS = jobspec.compile(SPEC)


@pytest.fixture
def client(dsn):
    with Client(JOBS, dsn) as opened:
        yield opened


def test_the_spec_of_the_page_is_one_that_the_engine_takes():
    require_supported(JOBS)
    assert jobspec.check(SPEC) == ()
    assert JOBS["search.index"].triggers == ()


def test_the_page_tells_every_option_and_every_mode():
    told = set(re.findall(r"`(\w+)`", PAGE))
    assert told >= {*AddJobOptions.__annotations__, *get_args(JobKeyMode)}


def test_the_code_of_the_page_runs(client, connection):
    exec(ADDING + KEYED, {"client": client})  # noqa: S102
    assert [(run.state, run.events) for run in runs(connection)] == [("pending", 1)] * 3


def test_the_table_of_the_page_is_what_the_debounce_does(client, clock):
    start = clock.now()
    assert len(TIMES) == 6
    for called, due in TIMES:
        clock.set(start + timedelta(seconds=called))
        added = eval(KEYED, {"client": client, "timedelta": timedelta})  # noqa: S307
        assert added.run_at == start + timedelta(seconds=due)


def test_the_sql_of_the_page_adds_what_it_says(dsn, connection):
    with psycopg.connect(dsn, autocommit=True) as caller:
        caller.execute("create table page (id int)")
        for statement in CALLS.split(";\n"):
            caller.execute(statement)
        caller.execute(TRIGGER)
        caller.execute("insert into page values (7), (8)")
    keys = [(run.debounce_key, run.events) for run in runs(connection)]
    assert sorted(keys, key=str) == [("page/7", 2), ("page/8", 1), (None, 1)]
