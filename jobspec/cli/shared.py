"""What several commands share: the argument for specs, and how they count."""

from __future__ import annotations

import click

PATHS = click.argument("paths", nargs=-1, required=True, metavar="PATHS...")


def counted(number: int, word: str) -> str:
    """Return `1 job`, `1,200 jobs`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
