"""Tables for people, as wide as the terminal or as they need to be in a file or a pipe; JSON.

What comes from a database may be anybody's text: nothing of it gives orders to a terminal.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from jobspec_engine.payload import UnreadableError, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_JSON = ("data", "event_data", "result")  # columns that are read as texts, to keep what was sent
_UNLIMITED = 100_000  # columns; rich takes anything but a terminal for one of 80


# Controls, what turns the direction of writing around, and halves of surrogate pairs.
_ORDERS = re.compile(
    r"[\0-\x08\x0b-\x1f\x7f-\x9f"
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    r"\ud800-\udfff]"
)


def plain(text: str) -> str:
    """Return a text with escapes in place of what would not be printed but obeyed."""
    return _ORDERS.sub(lambda found: ascii(found[0])[1:-1], text)


def say(text: str, *, err: bool = False) -> None:
    """Print a line, or lines, to a person; `err`: to standard error."""
    click.echo(plain(text), err=err)


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
        name: _value(value) if name in _JSON and isinstance(value, str) else value
        for name, value in row.items()
    }


def _value(text: str) -> Any:
    """Return the value of JSON text, or the text where that can't be read."""
    try:
        return decode(text)
    except UnreadableError:
        return text


def _iso(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def show(headings: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Print a table, numbers to the right, without the columns that nothing is in."""
    filled = [[plain(text) for text in row] for row in rows]
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
