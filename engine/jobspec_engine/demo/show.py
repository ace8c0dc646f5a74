"""What the demo shows: two tables, one of the events and one of the runs."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from jobspec_engine.demo.play import PUSHES, SENDERS, Played, play

_WHY = {
    ("email.send", "enqueued"): "first with its key",
    ("email.send", "duplicate"): "key used before",
    ("system.code-graph-refresh", "enqueued"): "first of a burst",
    ("system.code-graph-refresh", "coalesced"): "joined the waiting run",
}


def show(dsn: str) -> None:
    """Play the demo and print what happened."""
    console = Console()
    console.print(f"Sending one email twice and {PUSHES} pushes to one repository,")
    console.print(f"from {SENDERS} senders that race one another.\n")
    played = play(dsn)
    console.print(_events(played), "")
    console.print("The clock is moved on by two minutes, to when the burst is due.\n")
    console.print(_runs(played))


def _events(played: Played) -> Table:
    table = _table("What became of the events", "job", "events", "outcome", "run", "why")
    for told, count in played.outcomes:
        why = told.reason or _WHY[told.job_id, told.outcome]
        table.add_row(told.job_id, str(count), told.outcome, str(told.run_id), why)
    return table


def _runs(played: Played) -> Table:
    table = _table("What ran", "run", "job", "state", "events", "result")
    for run in played.runs:
        result = "" if run.result is None else str(json.loads(run.result))
        table.add_row(str(run.run_id), run.job_id, run.state, str(run.events), result)
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="right" if heading in ("events", "run") else "left")
    return table
