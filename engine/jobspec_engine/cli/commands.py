"""What each command does: arguments, what it prints and its exit code, nothing else.

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
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, cast

import click
import psycopg

import jobspec
from jobspec_engine.access import give_access
from jobspec_engine.calls import fetch
from jobspec_engine.cli.logs import log_to_stderr
from jobspec_engine.cli.options import (
    Limit,
    as_json,
    database,
    database_options,
    limit_option,
    server,
    server_option,
)
from jobspec_engine.cli.times import Length
from jobspec_engine.client import Client
from jobspec_engine.drift import drift
from jobspec_engine.migrate import migrate
from jobspec_engine.retention import Retention
from jobspec_engine.statements import Statements
from jobspec_engine.tables import cell, say, show, to_json, with_values
from jobspec_engine.worker import Worker

if TYPE_CHECKING:
    from jobspec_engine.events import Dispatched, Sent
    from jobspec_engine.rows import RunRow

log = logging.getLogger(__name__)

STATES = ("pending", "running", "completed", "failed", "cancelled")


@click.command("demo")
@server_option
def demo_command(dsn: str | None) -> None:
    """Run two example jobs and show what ran.

    An email is sent twice, and there is a burst of pushes. The demo lives in a schema of its own,
    which is dropped at its end.
    """
    from jobspec_engine.demo import show as demo  # noqa: PLC0415  only this command needs it

    with server(dsn) as chosen:
        demo.show(chosen)


@click.command("migrate")
@database_options
def migrate_command(dsn: str | None, schema: str) -> None:
    """Bring the schema to this version. Safe to repeat, and from many places at once.

    Makes the roles of its sender, worker, reader and owner, too, and gives them what each needs, or
    says who can.
    """
    with server(dsn) as chosen:
        applied = migrate(chosen, schema)
        access = give_access(chosen, schema)
    for one in applied:
        say(f"applied {one}")
    if not applied:
        say(f"schema {schema} is up to date")
    for role in access.made:
        say(f"made role {role}")
    for lack in access.lacking:
        say(lack, err=True)


@click.command("drift")
@database_options
@as_json
def drift_command(dsn: str | None, schema: str, as_json: bool) -> None:  # noqa: FBT001  click's way
    """Name what differs in the live schema.

    It is compared with what the migrations make. Exits with 1 if anything differs.
    """
    with database(dsn, schema) as chosen, psycopg.connect(chosen) as connection:
        differences = drift(connection, schema)
    if as_json:
        click.echo(to_json([dataclasses.asdict(one) for one in differences]))
    else:
        for one in differences:
            say(str(one))
        if not differences:
            say(f"schema {schema}: no drift")
    sys.exit(1 if differences else 0)


@click.command("worker")
@click.argument("paths", nargs=-1, required=True, metavar="PATHS...")
@database_options
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How many runs may run at once.",
)
@click.option(
    "--lease",
    type=Length(timedelta(seconds=0.5)),
    default="30s",
    show_default=True,
    help="How long after a worker died its runs are reclaimed.",
)
@click.option(
    "--limit",
    "limits",
    type=Limit(),
    multiple=True,
    help="How many runs of one job this worker holds at once, such as `email.send=3`; repeatable.",
)
@click.option(
    "--grace",
    type=Length(timedelta(0)),
    default="25s",
    show_default=True,
    help="How long running runs have to end when the worker is stopped.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Log lines for people, or one JSON object a line.",
)
@click.option(
    "--retention", is_flag=True, help="Prune every ten minutes, as `jobspec prune` does by default."
)
@click.option("--until-idle", is_flag=True, help="Stop when nothing is due.")
def worker_command(
    paths: tuple[str, ...],
    dsn: str | None,
    schema: str,
    concurrency: int,
    lease: timedelta,
    limits: tuple[tuple[str, int], ...],
    grace: timedelta,
    log_format: Literal["text", "json"],
    retention: bool,  # noqa: FBT001  click's way
    until_idle: bool,  # noqa: FBT001  click's way
) -> None:
    """Run the jobs of PATHS until SIGTERM or Ctrl-C.

    The first signal lets running runs end, and gives back those that have not after a while; a
    second one gives them back at once.
    """
    log_to_stderr(log_format)
    sys.path.insert(0, os.getcwd())  # noqa: PTH109  handlers are named as `python -m` finds them
    jobs = jobspec.compile(paths)
    with database(dsn, schema, migrates=True) as chosen:
        worker = Worker(
            jobs,
            chosen,
            schema=schema,
            concurrency=concurrency,
            limits=dict(limits),
            lease=lease,
            retention=Retention() if retention else None,
        )
        asyncio.run(_work(worker, grace, until_idle=until_idle))


async def _work(worker: Worker, grace: timedelta, *, until_idle: bool) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, worker, grace)
    log.info("worker %s is at work", worker.name)
    await worker.run(until_idle=until_idle)
    log.info("worker %s is done", worker.name)


def _stop(worker: Worker, grace: timedelta) -> None:
    if worker.stopping:
        _give_back(worker)
        return
    seconds = grace.total_seconds()
    log.info("letting the running runs end for %g s; a second signal gives them back", seconds)
    worker.stop()
    asyncio.get_running_loop().call_later(seconds, _give_back, worker)


def _give_back(worker: Worker) -> None:
    log.info("giving the running runs back")
    worker.stop(now=True)


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
@click.option(
    "--id",
    "event_id",
    metavar="ID",
    help="The event's id: the same id starts nothing again.",
)
@click.option("--ts", type=int, help="When it happened, in milliseconds since 1970.")
@database_options
@as_json
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
    """Send the event NAME with DATA.

    DATA is a JSON object, or - for standard input.
    """
    payload = _parse(data)
    jobs = jobspec.compile(paths)
    with (
        database(dsn, schema, migrates=True) as chosen,
        Client(jobs, chosen, schema=schema) as client,
    ):
        sent = client.send(name, payload, id=event_id, ts=ts)
    if as_json:
        click.echo(to_json(dataclasses.asdict(sent)))
    else:
        _show_sent(sent)
    if not sent.jobs:
        known = _known_events(jobs)
        say(f"no job has the trigger `{name}`; {known}; a run that waits for it goes on", err=True)


def _parse(data: str) -> dict[str, object]:
    try:
        payload: Any = json.loads(sys.stdin.read() if data == "-" else data)
    except ValueError as error:
        raise click.UsageError(f"DATA is not JSON: {error}") from error
    except RecursionError as error:
        raise click.UsageError("DATA is nested too deep") from error
    if not isinstance(payload, dict):
        raise click.UsageError("DATA must be a JSON object, such as '{\"id\": 1}'")
    return cast("dict[str, object]", payload)


def _known_events(jobs: jobspec.CompiledJobs) -> str:
    """Return which events start a job, in a few words."""
    triggers = (trigger for job in jobs.values() for trigger in job.triggers)
    names = sorted({one.event for one in triggers if isinstance(one, jobspec.EventTrigger)})
    if not names:
        return "no event starts any"
    return "there are " + ", ".join(f"`{name}`" for name in names)


def _show_sent(sent: Sent) -> None:
    say(f"event {sent.event_id}")
    if sent.jobs:
        show(("job", "outcome", "run", "due", "why"), map(_sent_row, sent.jobs))


def _sent_row(job: Dispatched) -> tuple[str, ...]:
    return job.job_id, job.outcome, cell(job.run_id), cell(job.run_at), cell(job.reason)


@click.command("runs")
@database_options
@click.option("--job", "job_id", metavar="ID", help="Only this job's runs.")
@click.option("--state", type=click.Choice(STATES), help="Only runs in this state.")
@limit_option(20)
@as_json
def runs_command(
    dsn: str | None,
    schema: str,
    job_id: str | None,
    state: str | None,
    limit: int,
    as_json: bool,  # noqa: FBT001  click's way
) -> None:
    """List the newest runs.

    It says when each ended or else is due, and why it failed.
    """
    with database(dsn, schema) as chosen, psycopg.connect(chosen) as connection:
        rows = fetch(connection, Statements(schema).runs(job_id, state, limit))
    if as_json:
        click.echo(to_json([_plain_run(row) for row in rows]))
    elif rows:
        show(("run", "job", "state", "attempt", "events", "when", "why"), map(_run_row, rows))
    else:
        say("no runs")


def _run_row(row: RunRow) -> tuple[str, ...]:
    return (
        cell(row.run_id),
        row.job_id,
        row.state,
        f"{row.attempt} of {row.max_attempts}",
        cell(row.events),
        f"ended {cell(row.finished_at)}" if row.finished_at else f"due {cell(row.run_at)}",
        cell(row.message or _last_error(row)),
    )


def _last_error(row: RunRow) -> str | None:
    return str(row.last_failure["error"]) if row.last_failure else None


def _plain_run(row: RunRow) -> dict[str, Any]:
    plain = with_values(row._asdict())
    del plain["last_failure"]
    return {**plain, "last_error": _last_error(row)}


commands = (
    demo_command,
    drift_command,
    migrate_command,
    runs_command,
    send_command,
    worker_command,
)
