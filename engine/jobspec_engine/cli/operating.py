"""Commands for those who look after an engine: what there is, what is wrong, what may go."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
import psycopg

import jobspec
from jobspec_engine.calls import drive, fetch
from jobspec_engine.cli.known_jobs import nobody_knows
from jobspec_engine.cli.numbers import Whole
from jobspec_engine.cli.options import as_json, database, database_options, limit_option, server
from jobspec_engine.cli.times import Age, Since
from jobspec_engine.doctor import examine
from jobspec_engine.nearness import near_or_listed
from jobspec_engine.operation_statements import OperationStatements
from jobspec_engine.retention import Retention, prune
from jobspec_engine.stats import prometheus
from jobspec_engine.tables import cell, say, show, to_json, with_values
from jobspec_engine.upkeep_statements import UpkeepStatements

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from jobspec_engine.operation_statements import EventRow

_job = click.argument("job_id", metavar="JOB")


@click.command("events")
@database_options
@click.option("--name", metavar="NAME", help="Only events of this name.")
@click.option("--since", type=Since(), help="Only those received since then, or `2h` ago.")
@limit_option(20)
@as_json
def events_command(
    dsn: str | None,
    schema: str,
    name: str | None,
    since: datetime | timedelta | None,
    limit: int,
    as_json: bool,  # noqa: FBT001  click's way
) -> None:
    """List the newest events and what became of each.

    JSON has their data. An event without a job started none, or the runs that it started were
    pruned.
    """
    with database(dsn, schema) as chosen, psycopg.connect(chosen) as connection:
        rows = fetch(connection, OperationStatements(schema).events(name, since, limit))
    if as_json:
        click.echo(to_json([with_values(row._asdict()) for row in rows]))
    elif rows:
        headings = ("event", "name", "received", "job", "outcome", "run", "state")
        show(headings, (cells for row in rows for cells in _event_rows(row)))
    else:
        say("no events")


def _event_rows(row: EventRow) -> Iterator[tuple[str, ...]]:
    told = (row.event_id, row.name, cell(row.received_at))
    for job in row.jobs:
        yield (*told, job["job"], job["outcome"], cell(job["run"]), cell(job["state"]))
    if not row.jobs:
        yield (*told, "", "", "", "")


@click.command("stats")
@database_options
def stats_command(dsn: str | None, schema: str) -> None:
    """Print figures in the text format of Prometheus.

    They are about runs, dead letters and workers.
    """
    with database(dsn, schema) as chosen, psycopg.connect(chosen) as connection:
        figures = fetch(connection, OperationStatements(schema).stats())
    click.echo(prometheus(figures, schema), nl=False)


@click.command("prune")
@database_options
@click.option("--runs", type=Age(), default="30d", show_default=True, help="After their end.")
@click.option("--events", type=Age(), default="30d", show_default=True, help="After they came.")
@click.option("--dead-letters", type=Age(), default="90d", show_default=True, help="After the end.")
@click.option(
    "--batch",
    type=Whole(1, 100_000),
    default=1000,
    show_default=True,
    help="How many rows one transaction looks at.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@as_json
def prune_command(
    dsn: str | None,
    schema: str,
    runs: timedelta | None,
    events: timedelta | None,
    dead_letters: timedelta | None,
    batch: int,
    dry_run: bool,  # noqa: FBT001  click's way
    as_json: bool,  # noqa: FBT001  click's way
) -> None:
    """Delete what ended long ago.

    Each age is one such as 12h or 30d. A run stays while it has a dead letter, an event while it
    has either; `forever` keeps all. Of idempotency keys, those go whose window is over or whose run
    freed them by its end; one that still counts is never deleted.
    """
    retention = Retention(runs, events, dead_letters, batch)
    with database(dsn, schema) as chosen, psycopg.connect(chosen, autocommit=True) as connection:
        # What goes depends on what went before, so a dry run deletes all of it and rolls back.
        trial = connection.transaction(force_rollback=True) if dry_run else nullcontext()
        with trial:
            pruned = asdict(drive(connection, prune(retention, UpkeepStatements(schema))))
    if as_json:
        click.echo(to_json(pruned))
    else:
        for what, deleted in pruned.items():
            done = "would be deleted" if dry_run else "deleted"
            say(f"{what.replace('_', ' ')}: {deleted} {done}")


@click.command("doctor")
@database_options
@as_json
def doctor_command(dsn: str | None, schema: str, as_json: bool) -> None:  # noqa: FBT001  click's way
    """Find what is wrong with the database.

    It says what to do about each. Exits with 1 if anything is wrong.
    """
    with server(dsn) as chosen:
        findings = examine(chosen, schema)
    if as_json:
        click.echo(to_json([{**asdict(one), "fine": one.fine} for one in findings]))
    else:
        rows = (
            ("fine" if one.fine else "WRONG", one.check, cell(one.what), cell(one.advice))
            for one in findings
        )
        show(("", "check", "found", "to do"), rows)
    sys.exit(0 if all(one.fine for one in findings) else 1)


@click.command("pause")
@_job
@click.option(
    "--jobs", "paths", multiple=True, metavar="PATH",
    help="The specs that have the job, where no worker and no run has it yet; repeatable.",
)  # fmt: skip
@database_options
def pause_command(job_id: str, paths: tuple[str, ...], dsn: str | None, schema: str) -> None:
    """Pause a job: let no further run of it be claimed.

    What runs goes on, and the schedules of the job stand still.
    """
    specified = tuple(jobspec.compile(paths)) if paths else ()
    statements = UpkeepStatements(schema)
    with database(dsn, schema) as chosen, psycopg.connect(chosen, autocommit=True) as connection:
        if job_id not in specified:
            _require_known(connection, schema, job_id, specified)
        paused = fetch(connection, statements.pause(job_id))
    say(f"job {job_id} is paused" if paused else f"job {job_id} was paused already")


def _require_known(
    connection: psycopg.Connection[Any], schema: str, job_id: str, specified: tuple[str, ...]
) -> None:
    lack = (
        f"these specs have no job `{job_id}`; {near_or_listed(job_id, specified)}"
        if specified
        else nobody_knows(connection, schema, job_id, "name specs that have it by --jobs")
    )
    if lack is not None:
        raise click.ClickException(f"nothing was paused: {lack}")


@click.command("resume")
@_job
@database_options
def resume_command(job_id: str, dsn: str | None, schema: str) -> None:
    """Let a paused job go on.

    Its runs are claimed again, and missed ticks treated as its spec says.
    """
    statements = UpkeepStatements(schema)
    with database(dsn, schema) as chosen, psycopg.connect(chosen, autocommit=True) as connection:
        resumed = fetch(connection, statements.resume(job_id))
        fetch(connection, statements.wake())
        advice = "`jobspec stats` tells which jobs are paused"
        lack = None if resumed else nobody_knows(connection, schema, job_id, advice)
    if lack is not None:
        raise click.ClickException(f"nothing was resumed: {lack}")
    say(f"job {job_id} goes on" if resumed else f"job {job_id} was not paused")


commands = (
    doctor_command,
    events_command,
    pause_command,
    prune_command,
    resume_command,
    stats_command,
)
