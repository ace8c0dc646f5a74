"""No spec and no payload makes anything run code that the spec's owner did not name."""

from __future__ import annotations

import json
import logging
import re
import socket

import psycopg
import pytest
from click.testing import CliRunner

import jobspec
from enginekit import job, run_until_idle, runs
from jobspec import KeyTemplate
from jobspec.cli import main
from jobspec_engine import Client, Worker
from jobspec_engine.cli.logs import TextFormatter
from jobspec_engine.errors import HandlerError

# What a terminal would obey: a title, a colour, the clipboard, a C1 control, text turned around.
ORDERS = "\x1b]0;owned\x07\x1b[31m\x1b]52;c;eA==\x07\x9b31m\u202e\r"
OBEYED = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module that leaves a mark when it is imported."""
    monkeypatch.chdir(tmp_path)
    module = f"marks_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{module}.py").write_text(
        "import pathlib\nfrom pydantic import BaseModel\npathlib.Path('mark').touch()\n"
        "class Model(BaseModel):\n    key: str\nasync def handler(context): pass\n"
    )
    (tmp_path / "jobs.yaml").write_text(
        f"events: {{event: {{schema: '{module}:Model'}}}}\n"
        f"jobs: [{{id: job, triggers: [{{event: event}}], handler: '{module}:handler'}}]\n"
    )
    return tmp_path


def ran(folder):
    return (folder / "mark").exists()


COMMANDS = [
    ["check", "jobs.yaml"],
    ["compile", "jobs.yaml"],
    ["compile", "jobs.yaml", "--target", "inngest"],
    ["diff", "jobs.yaml", "jobs.yaml"],
    ["key", "event.data.key"],
    ["send", "event", '{"key": "x"}', "--jobs", "jobs.yaml"],
    ["pause", "job", "--jobs", "jobs.yaml"],
    ["replay", "1", "--jobs", "jobs.yaml"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_only_a_worker_imports_what_specs_name_unless_asked(folder, dsn, command, monkeypatch):
    monkeypatch.setenv("JOBSPEC_DSN", dsn)
    CliRunner().invoke(main, command)
    assert not ran(folder)


def test_a_check_imports_what_specs_name_when_it_is_asked(folder):
    assert CliRunner().invoke(main, ["check", "jobs.yaml", "--import"]).exit_code == 0
    assert ran(folder)


TAGGED = [
    "!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ['mark']]",
    "!!python/object/new:os.system ['touch mark']",
    "!!python/name:os.system",
    "!!python/module:marks",
    "!Path mark",
]


@pytest.mark.parametrize("value", TAGGED)
@pytest.mark.parametrize("place", ["id", "handler", "retries", "triggers"])
def test_a_tag_of_yaml_makes_no_object(folder, value, place):
    (folder / "tagged.yaml").write_text(f"jobs:\n  - {place}: {value}\n")
    result = CliRunner().invoke(main, ["check", "tagged.yaml"])
    assert result.exit_code == 1
    assert not ran(folder)


HANDLERS = [
    "__import__('os').system('touch mark')",
    "os:system('touch mark')",
    "os;import pathlib:x",
    "os:environ.__class__.__init__.__globals__['sys']",
    "../marks:handler",
    "http://127.0.0.1/x.py:handler",
    "file:///etc/passwd:handler",
]


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_is_a_name_and_no_expression(folder, dsn, handler):
    spec = {"jobs": [{"id": "job", "triggers": [{"event": "event"}], "handler": handler}]}
    with pytest.raises((jobspec.CompileError, HandlerError)):
        Worker(jobspec.compile(json.dumps(spec)), dsn)
    assert not ran(folder)


def test_a_reference_of_a_schema_is_not_fetched(folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for reference in (
            f"http://127.0.0.1:{port}/x.json",
            (folder / "x.json").as_uri(),
            "x.json",
        ):
            (folder / "x.json").write_text('{"required": ["fetched"]}')
            spec = {
                "events": {"event": {"schema": {"$ref": reference}}},
                "jobs": [{"id": "job", "triggers": [{"event": "event"}], "handler": "x:y"}],
            }
            (folder / "refers.json").write_text(json.dumps(spec))
            result = CliRunner().invoke(main, ["check", "refers.json", "--import"])
            assert "fetched" not in result.output
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


LITERALS = [
    '\'"; open("mark", "w"); "\'',
    "'\\'' + event.data.a",
    "'{open}' + event.data.a",
    "'%s' + event.data.a",
    "event.data.__class__ + event.data.__init__",
]


@pytest.mark.parametrize("template", LITERALS)
def test_a_key_is_compiled_from_nothing_but_values(folder, template):
    """Keys become functions: their texts stand in there as values, and fields are looked up."""
    key = KeyTemplate.parse(template).resolve({"name": "x", "data": {"a": "{0.__class__}"}})
    assert "<class" not in key.text
    assert not ran(folder)


SURPRISES = {
    "py/object": "os.system",
    "py/reduce": [{"py/function": "os.system"}, ["touch mark"]],
    "__class__": "Event",
    "__reduce__": ["os.system", ["touch mark"]],
    "$type": "System.Diagnostics.Process",
    "$ref": "file:///etc/passwd",
    "pickle": "gASVIQAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAp0b3VjaCBtYXJrlIWUUpQu",
    "format": "{0.__init__.__globals__} %(x)s ${HOME} $(touch mark) `touch mark`",
}


async def test_a_payload_stays_what_it_is(folder, dsn, connection):
    seen = []

    async def handler(context):
        seen.append(await context.step.run("look", lambda: context.event.data))
        return context.event.data

    compiled = job(handler=handler, idempotency="event.data.format")
    name = "{0.__class__} %s"
    with Client(job(event=name, handler=handler), dsn) as client:
        client.send(name, SURPRISES)
    await run_until_idle(compiled, dsn)
    (run,) = runs(connection)
    assert (seen, run.result) == ([SURPRISES], SURPRISES)
    assert not ran(folder)


@pytest.fixture
async def ordered(dsn):
    """A database in which all that others can name gives orders to terminals."""

    async def handler(context):
        raise ValueError(ORDERS)

    compiled = job(handler=handler, retries=0, idempotency="event.data.key")
    with Client(compiled, dsn) as client:
        client.send("event", {"key": ORDERS + "\ud800"}, id=ORDERS)
    await run_until_idle(compiled, dsn, name=ORDERS)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select jobspec.add_job(%s, job_key => %s)", [ORDERS, ORDERS])
        connection.execute("update jobspec.job_event set name = %s", [ORDERS])
    return dsn


LISTS = [["runs"], ["events"], ["dead-letters"], ["run", "1"], ["stats"], ["doctor"], ["drift"]]


@pytest.mark.parametrize("command", LISTS, ids=lambda command: command[0])
def test_no_text_of_others_gives_orders_to_a_terminal(ordered, command):
    result = CliRunner().invoke(main, [*command, "--dsn", ordered], color=True)
    assert result.output
    assert not OBEYED.search(result.output)
    assert command[0] in ("doctor", "drift") or "owned" in result.output


def test_no_line_of_a_log_gives_orders_to_a_terminal():
    record = logging.LogRecord("x", logging.INFO, "", 0, "run of %s", (ORDERS,), None)
    assert not OBEYED.search(TextFormatter().format(record))
