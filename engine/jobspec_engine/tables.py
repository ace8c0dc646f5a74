"""Tables for people, as wide as the terminal or as they need to be in a file or a pipe; JSON."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_JSON = ("data", "event_data", "result")  # columns that are read as texts, to keep what was sent
_UNLIMITED = 100_000  # columns; rich takes anything but a terminal for one of 80


def cell(value: object) -> str:
    """Return a value for a table: a time as the clock here shows it, of a message one line."""
    if isinstance(value, datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M:%S}"
    return "" if value is None else str(value).partition("\n")[0]


def to_json(value: object) -> str:
    """Return a value as JSON for programs: times as ISO 8601, with their zone."""
    return json.dumps(value, indent=2, default=_iso)


def with_values(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a row, what is kept as the text of JSON as the value that it is."""
    return {
        name: json.loads(value) if name in _JSON and isinstance(value, str) else value
        for name, value in row.items()
    }


def _iso(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def show(headings: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Print a table, numbers to the right, without the columns that nothing is in."""
    filled = tuple(rows)
    used = [at for at, _ in enumerate(headings) if any(row[at] for row in filled)]
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for at in used:
        numbers = all(row[at].isdigit() for row in filled)
        table.add_column(headings[at], justify="right" if numbers else "left")
    for row in filled:
        table.add_row(*(row[at] for at in used))
    _console().print(table)


def _console() -> Console:
    """Return a console that prints what it is given: a message may hold `[x]` or `:x:`."""
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = _UNLIMITED
    return console
