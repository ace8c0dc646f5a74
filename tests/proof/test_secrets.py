"""The password of an address is told to the server alone: not in output, logs, traces or `ps`."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
import threading
import traceback
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from click.testing import CliRunner
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from databases import PythonProcess
from enginekit import PATIENCE, job, run_until_idle
from jobspec.cli import main
from jobspec_engine import AsyncClient, Client, Engine, Worker
from jobspec_engine.access import give_access
from jobspec_engine.cli import commands
from jobspec_engine.doctor import examine
from jobspec_engine.drift import drift
from jobspec_engine.errors import DsnError
from jobspec_engine.migrate import migrate

# Told if any part of it is told: as it is, or as an address has it.
SECRET = "zebra/quokka@walrus%gecko"  # noqa: S105  it opens nothing
PARTS = ("zebra", "quokka", "walrus", "gecko")
SHORT = timedelta(seconds=1)

SPEC = "jobs: [{id: job, triggers: [{event: event}], handler: 'asyncio:sleep'}]"
ARGUMENTS = {
    "add": ["job", "--jobs", "jobs.yaml"],
    "cancel": ["1"],
    "dead-letters": [],
    "demo": [],
    "doctor": [],
    "drift": [],
    "dsn": [],
    "events": [],
    "migrate": [],
    "pause": ["job", "--jobs", "jobs.yaml"],
    "prune": [],
    "replay": ["1", "--jobs", "jobs.yaml"],
    "resume": ["job"],
    "run": ["1"],
    "runs": [],
    "send": ["event", "--jobs", "jobs.yaml"],
    "stats": [],
    "worker": ["jobs.yaml", "--until-idle"],
}


class Refusing:
    """A server that asks for the password, in the clear, and refuses whatever it is."""

    def __enter__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()
        return self._socket.getsockname()[1]

    def __exit__(self, *exc_info):
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self):
        with suppress(OSError):
            while True:
                line, _ = self._socket.accept()
                threading.Thread(target=self._refuse, args=(line,), daemon=True).start()

    def _refuse(self, line):
        with suppress(OSError), line:
            while b"user\0" not in line.recv(4096):
                line.sendall(b"N")  # no encryption
            line.sendall(b"R\0\0\0\x08\0\0\0\x03")
            line.recv(4096)
            fields = b"SFATAL\0C28P01\0Mpassword authentication failed\0\0"
            line.sendall(b"E" + (len(fields) + 4).to_bytes(4) + fields)


@pytest.fixture(scope="module")
def refusing():
    """The port of such a server."""
    with Refusing() as port:
        yield port


def url(host, port):
    return f"postgresql://ada:{quote(SECRET, safe='')}@{host}:{port}/app"


def pairs(host, port):
    return make_conninfo(host=host, port=port, user="ada", password=SECRET, dbname="app")


def query(host, port):
    return f"postgresql://{host}:{port}/app?user=ada&password={quote(SECRET, safe='')}"


def in_environment(host, port):
    return f"postgresql://ada@{host}:{port}/app"


WHERE = [
    ("refused", url),
    ("refused", pairs),
    ("refused", query),
    ("refused", in_environment),
    ("unreachable", url),
    ("unreachable", pairs),
    ("unknown host", url),
]


@pytest.fixture(params=WHERE, ids=lambda param: f"{param[0]} {param[1].__name__}")
def failing(request, monkeypatch, refusing):
    """An address that fails, with the password in one of the forms that it can have."""
    how, form = request.param
    monkeypatch.delenv("JOBSPEC_DSN", raising=False)
    if form is in_environment:
        monkeypatch.setenv("PGPASSWORD", SECRET)
    if how == "unknown host":
        return form("db.invalid", 5432)
    return form("127.0.0.1", refusing if how == "refused" else 1)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, caplog):
    """The folder that commands run in; all is logged."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.yaml").write_text(SPEC)
    caplog.set_level(logging.DEBUG)


def holds_none(text):
    return not [part for part in PARTS if part in text]


def logged(caplog):
    """Return all that was logged, with tracebacks and what records carry beside their text."""
    formatted = logging.Formatter("%(message)s")
    return "\n".join(f"{formatted.format(one)} {vars(one)}" for one in caplog.records)


def told(error):
    return "".join(traceback.format_exception(error)) + repr(error)


def test_every_command_that_takes_an_address_is_tried():
    assert set(ARGUMENTS) == {command.name for command in commands}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_no_command_that_fails_tells_the_password(caplog, failing, name):
    dsn = make_conninfo(failing, connect_timeout=2)
    result = CliRunner().invoke(main, [name, *ARGUMENTS[name], "--dsn", dsn])
    assert result.exit_code == (0 if name == "dsn" else 1), result.output
    assert holds_none(result.output)
    assert holds_none(logged(caplog))
    assert result.exception is None or holds_none(told(result.exception))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_no_command_that_works_tells_the_password(caplog, dsn, name, monkeypatch):
    monkeypatch.setenv("JOBSPEC_DSN", make_conninfo(dsn, password=SECRET, sslpassword=SECRET))
    result = CliRunner().invoke(main, [name, *ARGUMENTS[name]])
    assert holds_none(result.output)
    assert holds_none(logged(caplog))


async def use_client(dsn):
    with Client(job(), dsn, connect_timeout=SHORT) as client:
        client.send("event", {})


async def use_async_client(dsn):
    async with AsyncClient(job(), dsn, connect_timeout=SHORT) as client:
        await client.send("event", {})


async def use_engine(dsn):
    async with Engine(job(), dsn, connect_timeout=SHORT) as engine:
        await engine.send("event", {})


async def use_worker(dsn):
    async with asyncio.timeout(1):  # it would wait for the database
        await Worker(job(), dsn).run()


def in_thread(call):
    async def use(dsn):
        await asyncio.to_thread(call, dsn)

    return use


def diagnose(dsn):
    raise RuntimeError(*examine(dsn))


USES = {
    "client": use_client,
    "async client": use_async_client,
    "engine": use_engine,
    "worker": use_worker,
    "migrate": in_thread(migrate),
    "drift": in_thread(drift),
    "give_access": in_thread(give_access),
    "doctor": in_thread(diagnose),
}


@pytest.mark.parametrize("name", USES)
async def test_no_error_of_the_library_tells_the_password(caplog, failing, name):
    with pytest.raises((psycopg.Error, TimeoutError, RuntimeError, ExceptionGroup)) as raised:
        await USES[name](failing)
    assert holds_none(told(raised.value))
    assert holds_none(logged(caplog))


UNREADABLE = [
    "postgresql://ada:zebra@quokka@127.0.0.1/app",
    "postgresql://ada:zebra/quokka@127.0.0.1/app",
    "postgresql://ada:zebra quokka@127.0.0.1/app",
    "postgresql://127.0.0.1/app?pasword=zebra",
    "host=127.0.0.1 password='zebra",
    "zebra",
]


@pytest.mark.parametrize("dsn", UNREADABLE)
@pytest.mark.parametrize("name", USES)
async def test_an_address_that_can_not_be_read_is_refused_and_not_repeated(name, dsn):
    with pytest.raises(DsnError, match="it can't be read; write postgresql://") as raised:
        await USES[name](dsn)
    assert holds_none(told(raised.value))


@pytest.mark.parametrize("made", [Client, AsyncClient, Engine, Worker])
def test_nothing_that_has_an_address_tells_the_password_of_itself(made):
    assert holds_none(repr(made(job(), url("127.0.0.1", 1))))


def command_lines():
    """Return the command lines of all processes, as `ps` shows them."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield file.read_bytes().decode(errors="replace")


WORK = """
import os
from jobspec.cli import main
os.chdir(os.environ["FOLDER"])
main(["worker", "jobs.yaml"], prog_name="jobspec")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_has_the_password_in_its_command_line(dsn, tmp_path, monkeypatch):
    monkeypatch.setenv("JOBSPEC_DSN", make_conninfo(dsn, password=SECRET))
    monkeypatch.setenv("FOLDER", str(tmp_path))
    with PythonProcess(WORK) as worker:
        line = ""
        while "is at work" not in line:
            line = worker.process.stderr.readline()
            assert line, "the worker ended"
        found = list(command_lines())
    assert any("jobspec.cli" in one for one in found)
    assert not [one for one in found if not holds_none(one)]


async def test_no_span_has_the_password(dsn, monkeypatch):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("jobspec_engine.telemetry.trace.get_tracer", provider.get_tracer)

    async def handler(context):
        raise ValueError("no")

    compiled, secret = job(handler=handler, retries=0), make_conninfo(dsn, password=SECRET)
    with Client(compiled, secret) as client, trace.get_tracer("test").start_as_current_span("x"):
        client.send("event", {})
    async with asyncio.timeout(PATIENCE):
        await run_until_idle(compiled, secret)
    with psycopg.connect(dsn) as connection:
        kept = connection.execute(
            "select errors::text, (select json_agg(w)::text from jobspec.job_event w)"
            " from jobspec.job_queue"
        ).fetchone()
    spans = [json.loads(one.to_json()) for one in exporter.get_finished_spans()]
    assert holds_none(json.dumps(spans) + str(kept))
    assert conninfo_to_dict(secret)["password"] == SECRET
