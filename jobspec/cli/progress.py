"""How far a long piece of work is, on a terminal and nowhere else."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Item = TypeVar("Item")

PATIENCE = 1.0  # seconds of work until anything is shown


def watched(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, and show on the terminal of standard error how many are done.

    Nothing is shown of short work, nor where standard error is closed or no terminal.
    """
    if sys.stderr is None or not sys.stderr.isatty():  # None where it was closed
        yield from items
        return
    until = monotonic() + PATIENCE
    for number, item in enumerate(items):
        if monotonic() >= until:
            yield from _shown(items, number)
            return
        yield item


def _shown(items: Sequence[Item], done: int) -> Iterator[Item]:
    """Yield the items from number `done` on, under a bar that goes when they are all done."""
    from rich.console import Console  # noqa: PLC0415  slow, and only for work that takes long
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("checking", total=len(items), completed=done)
        for item in items[done:]:
            yield item
            progress.advance(task)
