"""What the demo shows: two tables, one of the events and one of the runs."""

from __future__ import annotations

import json

import click

from jobspec_engine import tables
from jobspec_engine.demo.play import PUSHES, SENDERS, Played, play

_WHY = {
    ("email.send", "enqueued"): "first with its key",
    ("email.send", "duplicate"): "key used before",
    ("system.code-graph-refresh", "enqueued"): "first of a burst",
    ("system.code-graph-refresh", "coalesced"): "joined the waiting run",
}


def show(dsn: str) -> None:
    """Play the demo and print what happened."""
    click.echo(f"Sending one email twice and {PUSHES} pushes to one repository,")
    click.echo(f"from {SENDERS} senders that race one another.\n")
    played = play(dsn)
    _show_events(played)
    click.echo("\nThe clock is moved on by two minutes, to when the burst is due.\n")
    _show_runs(played)


def _show_events(played: Played) -> None:
    rows = [
        (
            told.job_id,
            str(count),
            told.outcome,
            str(told.run_id),
            told.reason or _WHY[told.job_id, told.outcome],
        )
        for told, count in played.outcomes
    ]
    headings = ("job", "events", "outcome", "run", "why")
    tables.show(headings, rows, title="What became of the events")


def _show_runs(played: Played) -> None:
    rows = [
        (
            str(run.run_id),
            run.job_id,
            run.state,
            str(run.events),
            "" if run.result is None else str(json.loads(run.result)),
        )
        for run in played.runs
    ]
    tables.show(("run", "job", "state", "events", "result"), rows, title="What ran")
