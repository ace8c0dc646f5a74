"""Send an event, add a run, and list the runs that there are."""

from __future__ import annotations

import dataclasses
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import click
import psycopg

import jobspec
from jobspec_engine.add_job import MODES
from jobspec_engine.calls import fetch
from jobspec_engine.cli.known_jobs import say_if_unknown
from jobspec_engine.cli.numbers import Whole
from jobspec_engine.cli.options import (
    as_json,
    compiled,
    database,
    database_options,
    jobs_option,
    limit_option,
)
from jobspec_engine.cli.times import At, Length
from jobspec_engine.client import Client
from jobspec_engine.nearness import near_or_listed
from jobspec_engine.payload import parse
from jobspec_engine.statements import Statements
from jobspec_engine.tables import cell, say, show, to_json, with_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobspec_engine.add_job import AddJobOptions
    from jobspec_engine.events import Dispatched, Sent
    from jobspec_engine.rows import RunRow

STATES = ("pending", "running", "completed", "failed", "cancelled")


@click.command("send")
@click.argument("name")
@click.argument("data", default="{}")
@jobs_option("The specs whose jobs the event may start")
@click.option(
    "--id",
    "event_id",
    metavar="ID",
    help="The event's id: the same id starts nothing again.",
)
@click.option(
    "--ts", type=Whole(), metavar="INTEGER", help="When it happened, in milliseconds since 1970."
)
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
    jobs = compiled(paths)
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
        known = _known_events(name, jobs)
        say(f"no job has the trigger `{name}` (a run that waits for it goes on); {known}", err=True)


def _parse(data: str) -> dict[str, object]:
    try:
        payload: Any = parse(sys.stdin.read() if data == "-" else data)
    except ValueError as error:
        raise click.UsageError(f"DATA is not JSON: {error}") from error
    except RecursionError as error:
        raise click.UsageError("DATA is nested too deep") from error
    if not isinstance(payload, dict):
        raise click.UsageError("DATA must be a JSON object, such as '{\"id\": 1}'")
    return cast("dict[str, object]", payload)


def _known_events(name: str, jobs: jobspec.CompiledJobs) -> str:
    """Return which event was meant that starts a job, or which there are."""
    triggers = (trigger for job in jobs.values() for trigger in job.triggers)
    names = {one.event for one in triggers if isinstance(one, jobspec.EventTrigger)}
    return near_or_listed(name, names) if names else "no event starts any"


def _show_sent(sent: Sent) -> None:
    say(f"event {sent.event_id}")
    if sent.jobs:
        _show_dispatched(sent.jobs)


def _show_dispatched(dispatched: Iterable[Dispatched]) -> None:
    show(("job", "outcome", "run", "due", "why"), map(_dispatched_row, dispatched))


def _dispatched_row(job: Dispatched) -> tuple[str, ...]:
    return job.job_id, job.outcome, cell(job.run_id), cell(job.run_at), cell(job.reason)


@click.command("add")
@click.argument("job_id", metavar="JOB")
@click.argument("data", default="{}")
@jobs_option("The specs that have the job")
@click.option("--at", "run_at", type=At(), help="When the run is due. [default: at once]")
@click.option("--delay", type=Length(timedelta(0)), help="In which time it is due.")
@click.option(
    "--priority",
    type=Whole(-(1 << 15), (1 << 15) - 1),
    default=0,
    show_default=True,
    help="Of runs that are due the smallest is claimed first.",
)
@click.option(
    "--max-attempts",
    type=Whole(1, 1000),
    help="How often it is attempted. [default: as the job says]",
)
@click.option("--job-key", metavar="KEY", help="Join the run with this key that waits.")
@click.option(
    "--job-key-mode",
    type=click.Choice(MODES),
    help="What becomes of the run that is joined. [default: replace]",
)
@click.option(
    "--max-debounce",
    type=Length(timedelta(0)),
    help="For the mode debounce: how long it is put off at most.",
)
@database_options
@as_json
def add_command(
    job_id: str,
    data: str,
    paths: tuple[str, ...],
    dsn: str | None,
    schema: str,
    as_json: bool,  # noqa: FBT001  click's way
    **options: Any,
) -> None:
    """Add a run of JOB with DATA, without an event.

    DATA is a JSON object, or - for standard input.
    """
    payload = _parse(data)
    jobs = compiled(paths)
    given = {name: value for name, value in options.items() if value is not None}
    with (
        database(dsn, schema, migrates=True) as chosen,
        Client(jobs, chosen, schema=schema) as client,
    ):
        added = client.add_job(job_id, payload, **cast("AddJobOptions", given))
    if as_json:
        click.echo(to_json(dataclasses.asdict(added)))
    else:
        _show_dispatched([added])


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
        if not rows:
            say_if_unknown(connection, schema, job_id)
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
        f"{_attempt_under_way(row)} of {row.max_attempts}",
        cell(row.events),
        f"ended {cell(row.finished_at)}" if row.finished_at else f"due {cell(row.run_at)}",
        cell(row.message or _last_error(row)),
    )


def _attempt_under_way(row: RunRow) -> int:
    """Return the attempt that a run is in; while it waits for a step it is not counted."""
    return row.attempt + (row.state == "pending" and row.passes > 0)


def _last_error(row: RunRow) -> str | None:
    return str(row.last_failure["error"]) if row.last_failure else None


def _plain_run(row: RunRow) -> dict[str, Any]:
    plain = with_values(row._asdict())
    del plain["last_failure"]
    return {**plain, "last_error": _last_error(row)}


commands = (add_command, runs_command, send_command)
