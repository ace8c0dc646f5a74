"""Commands about runs that fail: look at one, cancel, list dead letters, replay."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
import psycopg

from jobspec_engine.arguments import unknown_job
from jobspec_engine.calls import drive, fetch
from jobspec_engine.cancel import cancel, cancel_by_key
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
from jobspec_engine.cli.times import Rate, Since
from jobspec_engine.client import Client
from jobspec_engine.memos import StepKey
from jobspec_engine.payload import is_object, parse
from jobspec_engine.replay import REASONS, replaced_by
from jobspec_engine.rows import DeadLetters
from jobspec_engine.statements import Statements
from jobspec_engine.tables import cell, say, show, to_json, with_values

if TYPE_CHECKING:
    from jobspec_engine.replay import Replayed
    from jobspec_engine.rows import DeadLetterRow, WholeRun

_WHY = {
    "requested": "it is running: its worker ends it",
    "ended": "it had ended before",
    "not-dead": "it did not end without success",
}
_UNKNOWN = "there is no such run; if it has ended it may have been pruned"
_FINE = ("enqueued", "duplicate", "cancelled", "requested", "ended")

_run_ids = click.argument("run_ids", nargs=-1, type=Whole(), metavar="[RUN]...")


def _which(
    job_id: str | None, reason: str | None, since: datetime | timedelta | None
) -> DeadLetters:
    if isinstance(since, timedelta):
        return DeadLetters(job_id, reason, within=since)
    return DeadLetters(job_id, reason, since)


_job = click.option("--job", "job_id", metavar="ID", help="Only this job's.")
_reason = click.option("--reason", type=click.Choice(REASONS), help="Only those with this reason.")
_since = click.option("--since", type=Since(), help="Only those that died since then, or `2h` ago.")


@click.command("run")
@click.argument("run_id", type=Whole(), metavar="RUN")
@database_options
@as_json
def run_command(run_id: int, dsn: str | None, schema: str, as_json: bool) -> None:  # noqa: FBT001  click's way
    """Show a run, its steps and its history.

    Of its steps these are the hundred that were written last. The history has each pass that did
    not end well, by which worker, and why.
    """
    with database(dsn, schema) as chosen, psycopg.connect(chosen) as connection:
        found = fetch(connection, Statements(schema).run(run_id))
    if not found:
        raise click.ClickException(f"run {run_id}: {_UNKNOWN}")
    if as_json:
        click.echo(to_json(with_values(found[0]._asdict())))
    else:
        _show_run(found[0])


def _show_run(run: WholeRun) -> None:
    for name, value in with_values(run._asdict()).items():
        if name not in ("history", "steps") and value is not None:
            text = cell(value) if isinstance(value, datetime | str) else json.dumps(value)
            say(f"{name:<20} {text}")
    if run.steps:
        click.echo()
        show(("step", "kind", "state", "failures", "recorded", "why"), map(_step_row, run.steps))
    if run.history:
        click.echo()
        show(("attempt", "worker", "started", "ended", "error"), map(_entry_row, run.history))
        say(f"\n{run.history[-1]['traceback'] or ''}".rstrip())


def _step_row(step: dict[str, Any]) -> tuple[str, ...]:
    return (
        StepKey(step["task"], step["name"], step["number"]).title,
        step["kind"],
        step["state"],
        cell(step["failures"] or None),
        cell(datetime.fromisoformat(step["recorded_at"])),
        _why_waiting(step) if step["state"] == "waiting" else cell(_error_of(step)),
    )


def _why_waiting(step: dict[str, Any]) -> str:
    """Return what a step waits for, and until when at most."""
    awaited = {"event": step["event"], "run": step["run"]}
    what = [f"for {name} {value}" for name, value in awaited.items() if value is not None]
    until = step["wake_at"]
    when = [f"until {cell(datetime.fromisoformat(until))}"] if until else []
    return " ".join(what + when)


def _error_of(step: dict[str, Any]) -> str | None:
    error = step["error"]
    return error and f"{error['type']}: {error['message']}"


def _entry_row(entry: dict[str, Any]) -> tuple[str, ...]:
    started, ended = (datetime.fromisoformat(entry[one]) for one in ("started_at", "ended_at"))
    return str(entry["attempt"]), entry["worker"], cell(started), cell(ended), cell(entry["error"])


@click.command("dead-letters")
@database_options
@_job
@_reason
@_since
@limit_option(50)
@as_json
def dead_letters_command(
    dsn: str | None,
    schema: str,
    job_id: str | None,
    reason: str | None,
    since: datetime | timedelta | None,
    limit: int,
    as_json: bool,  # noqa: FBT001  click's way
) -> None:
    """List the runs that ended without success.

    The latest come first. JSON has data and history.
    """
    with database(dsn, schema) as chosen, psycopg.connect(chosen) as connection:
        call = Statements(schema).dead_letters(_which(job_id, reason, since), limit)
        rows = fetch(connection, call)
        if not rows:
            say_if_unknown(connection, schema, job_id)
    if as_json:
        click.echo(to_json([with_values(row._asdict()) for row in rows]))
    elif rows:
        headings = ("run", "job", "died", "attempts", "reason", "replayed as", "message")
        show(headings, map(_dead_row, rows))
    else:
        say("no dead letters")


def _dead_row(row: DeadLetterRow) -> tuple[str, ...]:
    cells = (row.run_id, row.job_id, row.died_at, row.attempt, row.reason, row.replayed_as)
    return (*map(cell, cells), cell(row.message))


@click.command("cancel")
@_run_ids
@click.option("--job", "job_id", metavar="ID", help="The job whose runs go by the key.")
@click.option("--idempotency-key", metavar="KEY", help="Cancel the run of this idempotency key.")
@click.option("--job-key", metavar="KEY", help="Cancel the runs of this job or debounce key.")
@database_options
@as_json
def cancel_command(
    run_ids: tuple[int, ...],
    job_id: str | None,
    idempotency_key: str | None,
    job_key: str | None,
    dsn: str | None,
    schema: str,
    as_json: bool,  # noqa: FBT001  click's way
) -> None:
    """Cancel runs by their numbers or their key.

    A key is one of a job, named by --job.
    """
    keys = (idempotency_key is not None) + (job_key is not None)
    if (job_id is not None) != (keys == 1) or bool(run_ids) == bool(keys):
        raise click.UsageError("name runs, or --job with --idempotency-key or --job-key")
    statements = Statements(schema)
    with (
        database(dsn, schema) as chosen,
        psycopg.connect(chosen, autocommit=True) as connection,
    ):
        if job_id is None:
            told = drive(connection, cancel(statements, run_ids))
        else:
            told = drive(connection, cancel_by_key(statements, job_id, idempotency_key, job_key))
        if not told:
            say_if_unknown(connection, schema, job_id)
    if as_json:
        click.echo(to_json([one._asdict() for one in told]))
    elif told:
        rows = ((str(one.run_id), one.outcome, _why(one.outcome, _UNKNOWN)) for one in told)
        show(("run", "outcome", "why"), rows)
    else:
        say("no run that waits or runs goes by this key; `jobspec run RUN` shows a run's own")
    sys.exit(0 if told and all(one.outcome in _FINE for one in told) else 1)


@click.command("replay")
@_run_ids
@jobs_option("The specs of the jobs, whose keys are resolved anew")
@_job
@_reason
@_since
@click.option(
    "--data",
    metavar="JSON",
    help="What to send instead: a JSON object, a file with one, or - (standard input).",
)
@click.option("--rate", type=Rate(), help="How many become due in a time, such as `10/s`.")
@click.option("--dry-run", is_flag=True, help="Say what would be replayed, and send nothing.")
@database_options
@as_json
def replay_command(
    run_ids: tuple[int, ...],
    paths: tuple[str, ...],
    dsn: str | None,
    schema: str,
    as_json: bool,  # noqa: FBT001  click's way
    **options: Any,
) -> None:
    """Send runs again that ended without success.

    They are named by their numbers, or picked from the dead letters by --job, --reason or --since.
    A run is replayed once; to replay it again tells the run of the first time.
    """
    which = _which(options["job_id"], options["reason"], options["since"])
    if bool(run_ids) == (which != DeadLetters()):
        raise click.UsageError("name runs, or say which by --job, --reason or --since")
    edit = None if options["data"] is None else replaced_by(_object(_text(options["data"])))
    jobs = compiled(paths)
    with database(dsn, schema) as chosen, Client(jobs, chosen, schema=schema) as client:
        replayed = client.replay_many(
            run_ids or which, edit=edit, rate=options["rate"], dry_run=options["dry_run"]
        )
    if as_json:
        click.echo(to_json([asdict(one) for one in replayed]))
    else:
        _show_replayed(replayed)
    if not replayed and options["job_id"] not in (None, *jobs):
        say(unknown_job(options["job_id"], jobs), err=True)
    sys.exit(0 if all(one.outcome in _FINE for one in replayed) else 1)


def _text(given: str) -> str:
    """Return what was given, what is in the file of this name, or what is on standard input (-)."""
    if given.lstrip()[:1] in ("{", "["):
        return given
    try:
        with click.open_file(given, encoding="utf-8") as file:
            return str(file.read())
    except OSError as error:
        raise click.UsageError(
            f"--data is neither a JSON object nor a file that can be read: {error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"--data is not UTF-8: {error}") from error


def _object(text: str) -> Any:
    try:
        data: Any = parse(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"--data is not JSON: {error}") from error
    if not is_object(data):
        raise click.UsageError("--data must be a JSON object, such as '{\"id\": 1}'")
    return data


def _show_replayed(replayed: list[Replayed]) -> None:
    if not replayed:
        say("no dead letters to replay")
        return
    show(("run", "outcome", "replayed as", "due", "why"), map(_replayed_row, replayed))
    counted = Counter(one.outcome for one in replayed)
    say(", ".join(f"{number} {outcome}" for outcome, number in counted.items()))


def _replayed_row(one: Replayed) -> tuple[str, ...]:
    why = one.reason or _why(one.outcome, "there is no such run, or these specs lack its job")
    if one.outcome == "duplicate":
        why = f"it was replayed before: to try once more, replay {one.replayed_as}"
    return tuple(map(cell, (one.run_id, one.outcome, one.replayed_as, one.run_at, why)))


def _why(outcome: str, unknown: str) -> str:
    """Return what an outcome says, where it does not say it by itself."""
    return unknown if outcome == "unknown" else _WHY.get(outcome, "")


commands = (cancel_command, dead_letters_command, replay_command, run_command)
