"""The engine's commands: arguments, tables and exit codes, nothing else.

Exit codes: 0 where all is well, 1 where something was found or failed, 2 for misuse.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import os
import signal
import sys
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click
import psycopg
from rich.console import Console
from rich.table import Table

import jobspec
from jobspec_engine.client import Client
from jobspec_engine.drift import drift
from jobspec_engine.embedded import EmbeddedPostgres
from jobspec_engine.errors import EngineError
from jobspec_engine.migrate import migrate, pending
from jobspec_engine.statements import Statements, fetch
from jobspec_engine.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from jobspec_engine.events import Sent
    from jobspec_engine.statements import RunRow

P = ParamSpec("P")
R = TypeVar("R")

STATES = ("pending", "running", "completed", "failed", "cancelled")


def database_options(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--dsn` and `--schema` to a command, and turn what the engine raises into messages."""

    @click.option(
        "--dsn",
        envvar="JOBSPEC_DSN",
        metavar="URL",
        help="The database, postgresql://… [env: JOBSPEC_DSN; default: a bundled Postgres]",
    )
    @click.option(
        "--schema",
        envvar="JOBSPEC_SCHEMA",
        default="jobspec",
        show_default=True,
        help="The schema of the engine's tables [env: JOBSPEC_SCHEMA]",
    )
    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (EngineError, jobspec.EventError, psycopg.Error) as error:
            raise click.ClickException(str(error)) from error

    return guarded


@contextmanager
def database(dsn: str | None, schema: str) -> Generator[str]:
    """Give the DSN to work on: the one asked for, or that of the bundled Postgres, migrated.

    A database that was asked for is never migrated unasked.
    """
    if dsn is not None:
        missing = pending(dsn, schema)
        if missing:
            names = ", ".join(str(one) for one in missing)
            raise click.ClickException(f"migrations are missing ({names}): run `jobspec migrate`")
        yield dsn
        return
    with bundled() as own:
        migrate(own, schema)
        yield own


@contextmanager
def bundled() -> Generator[str]:
    """Start the bundled Postgres, say where its data is, and stop it at the end."""
    with EmbeddedPostgres() as server:
        click.echo(f"bundled Postgres, data in {server.data_dir}", err=True)
        yield server.dsn


@click.command("demo")
@database_options
def demo_command(dsn: str | None, schema: str) -> None:  # noqa: ARG001  the demo has its own
    """Send an email twice and a burst of pushes, run them, show what ran.

    The demo lives in a schema of its own, which is dropped at its end.
    """
    from jobspec_engine.demo.show import show  # noqa: PLC0415  only this command needs it

    if dsn is not None:
        show(dsn)
        return
    with bundled() as own:
        show(own)


@click.command("migrate")
@database_options
def migrate_command(dsn: str | None, schema: str) -> None:
    """Bring the schema to this version. Safe to repeat, and from many places at once."""
    if dsn is None:
        with bundled() as own:
            _migrate(own, schema)
    else:
        _migrate(dsn, schema)


def _migrate(dsn: str, schema: str) -> None:
    applied = migrate(dsn, schema)
    for one in applied:
        click.echo(f"applied {one}")
    if not applied:
        click.echo(f"schema {schema} is up to date")


@click.command("drift")
@database_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def drift_command(dsn: str | None, schema: str, as_json: bool) -> None:  # noqa: FBT001  click's way
    """Name what differs in the live schema from what the migrations make; exit 1 if anything."""
    with database(dsn, schema) as chosen, psycopg.connect(chosen) as connection:
        differences = drift(connection, schema)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(one) for one in differences], indent=2))
    else:
        for one in differences:
            click.echo(str(one))
        if not differences:
            click.echo(f"schema {schema}: no drift")
    sys.exit(1 if differences else 0)


@click.command("worker")
@click.argument("paths", nargs=-1, required=True, metavar="PATHS...")
@database_options
@click.option("--concurrency", type=click.IntRange(min=1), default=100, show_default=True)
@click.option(
    "--lease",
    type=click.FloatRange(min=0.5),
    default=30.0,
    show_default=True,
    help="Seconds until the runs of a dead worker are reclaimed.",
)
@click.option("--until-idle", is_flag=True, help="Stop when nothing is due.")
def worker_command(
    paths: tuple[str, ...],
    dsn: str | None,
    schema: str,
    concurrency: int,
    lease: float,
    until_idle: bool,  # noqa: FBT001  click's way
) -> None:
    """Run the jobs of PATHS until SIGTERM or Ctrl-C.

    The first signal lets running runs end; a second one gives them back at once.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109  handlers are named as `python -m` finds them
    jobs = jobspec.compile(paths)
    with database(dsn, schema) as chosen:
        worker = Worker(
            jobs,
            chosen,
            schema=schema,
            concurrency=concurrency,
            lease=timedelta(seconds=lease),
        )
        asyncio.run(_work(worker, until_idle=until_idle))


async def _work(worker: Worker, *, until_idle: bool) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: worker.stop(now=worker.stopping))
    await worker.run(until_idle=until_idle)


@click.command("send")
@click.argument("name")
@click.argument("data", default="{}")
@click.option(
    "--jobs",
    "paths",
    multiple=True,
    required=True,
    metavar="PATH",
    help="The specs whose jobs the event may start; repeatable.",
)
@click.option("--id", "event_id", help="The event's id: the same id starts nothing again.")
@click.option("--ts", type=int, help="When it happened, in milliseconds since 1970.")
@database_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def send_command(
    name: str,
    data: str,
    paths: tuple[str, ...],
    event_id: str | None,
    ts: int | None,
    dsn: str | None,
    schema: str,
    as_json: bool,  # noqa: FBT001  click's way
) -> None:
    """Send the event NAME with DATA, a JSON object (or - for standard input)."""
    payload = _parse(data)
    jobs = jobspec.compile(paths)
    with database(dsn, schema) as chosen, Client(jobs, chosen, schema=schema) as client:
        sent = client.send(name, payload, id=event_id, ts=ts)
    _show_sent(sent, as_json=as_json)


def _parse(data: str) -> dict[str, Any]:
    text = sys.stdin.read() if data == "-" else data
    try:
        payload: Any = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"DATA is not JSON: {error}") from error
    if not isinstance(payload, dict):
        raise click.UsageError("DATA must be a JSON object, such as '{\"id\": 1}'")
    return payload


def _show_sent(sent: Sent, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(sent), indent=2, default=str))
        return
    click.echo(f"event {sent.event_id}")
    if not sent.jobs:
        click.echo("it triggers no job", err=True)
        return
    table = _table("job", "outcome", "run", "due", "why")
    for job in sent.jobs:
        table.add_row(
            job.job_id, job.outcome, _text(job.run_id), _text(job.run_at), _text(job.reason)
        )
    Console().print(table)


@click.command("runs")
@database_options
@click.option("--job", "job_id", help="Only this job's runs.")
@click.option("--state", type=click.Choice(STATES), help="Only runs in this state.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def runs_command(
    dsn: str | None,
    schema: str,
    job_id: str | None,
    state: str | None,
    limit: int,
    as_json: bool,  # noqa: FBT001  click's way
) -> None:
    """List the newest runs."""
    with database(dsn, schema) as chosen, psycopg.connect(chosen) as connection:
        rows = fetch(connection, Statements(schema).runs(job_id, state, limit))
    if as_json:
        click.echo(json.dumps([row._asdict() for row in rows], indent=2, default=str))
        return
    Console().print(_runs_table(rows) if rows else "no runs")


def _runs_table(rows: list[RunRow]) -> Table:
    table = _table("run", "job", "state", "attempt", "events", "due", "ended", "why")
    for row in rows:
        table.add_row(
            str(row.run_id),
            row.job_id,
            row.state,
            f"{row.attempt} of {row.max_attempts}",
            str(row.events),
            _text(row.run_at),
            _text(row.finished_at),
            _text(row.message),
        )
    return table


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    return table


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone().isoformat(" ", "seconds")
    return "" if value is None else str(value)


commands = (
    demo_command,
    drift_command,
    migrate_command,
    runs_command,
    send_command,
    worker_command,
)
