"""The page about deployment names what there is."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import signal
from pathlib import Path

import sqlalchemy

from enginekit import PATIENCE, count, job, run_of, sqlalchemy_url
from jobspec_engine import Client, Worker
from jobspec_engine.bulk import CHUNK
from jobspec_engine.cli import commands
from jobspec_engine.persistence import Persistence

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "deployment.md").read_text(encoding="utf-8")
SERVING, SENDING = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def worker_options():
    (command,) = [one for one in commands if one.name == "worker"]
    return {name: one for one in command.params for name in one.opts}


def test_the_options_and_defaults_of_the_page_are_those_of_the_command():
    options = worker_options()
    told = set(re.findall(r"(?<![-|])--[a-z][a-z-]+", PAGE)) - {"--strict"}
    assert told <= set(options)
    assert (options["--grace"].default, options["--lease"].default) == ("25s", "30s")
    assert options["--concurrency"].default == 100
    assert inspect.signature(Worker).parameters["max_refunds"].default == 5
    assert inspect.signature(Client).parameters["max_connections"].default == 4
    assert Persistence("", 1)._pool.max_size == 3
    assert f"{CHUNK:,} a\nstatement" in PAGE


def test_what_the_page_names_is_there():
    for path in re.findall(r"tests/[\w/]+\.py", PAGE):
        assert (ROOT / path).is_file(), path


def test_the_code_of_the_page_is_one_transaction(dsn, connection):
    connection.execute("create table orders (id int)")
    engine = sqlalchemy.create_engine(sqlalchemy_url(dsn))
    with Client(job(event="order.placed"), dsn) as client:
        exec(SENDING, {"engine": engine, "client": client, "text": sqlalchemy.text})  # noqa: S102
    engine.dispose()
    assert count(connection, "job_queue") == 1
    assert connection.execute("select id from orders").fetchall() == [(42,)]


async def test_the_service_of_the_page_runs_jobs_until_a_signal(dsn, connection):
    async def handler(context):
        os.kill(os.getpid(), signal.SIGTERM)

    compiled = job(handler=handler)
    with Client(compiled, dsn) as client:
        client.send("event", {})
    namespace = {}
    exec(SERVING, namespace)  # noqa: S102
    await asyncio.wait_for(namespace["serve"](compiled, dsn), PATIENCE)
    assert run_of(connection).state == "completed"
