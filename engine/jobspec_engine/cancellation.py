"""Cancellations that get lost: `wait_for`, which psycopg uses, may lose one before Python 3.12."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_AGAIN = 1.0  # seconds until what was cancelled is cancelled once more


def lost_cancellation_check() -> Callable[[], None]:
    """Return what raises a cancellation of this task that came since now and was lost."""
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()

    def require_none() -> None:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError

    return require_none


async def cancelled(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks, again if need be, and return when they have ended."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_AGAIN)
