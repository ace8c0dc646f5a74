"""Wake-ups that clients give to workers: behind the answer to the sender, and few for many sends.

Inside the transaction of a send a NOTIFY would take the server's commits one by one, and before the
answer it would be a second way there and back. It is not given at all where there is no worker.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from psycopg import OperationalError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Waker:
    """Calls `wake` in a thread: once for all that asked for it since the last call began.

    A wake-up that the database does not take is let go: polling finds the runs.
    """

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._due = False
        self._thread = ThreadPoolExecutor(1, "jobspec wake-ups")

    def __call__(self) -> None:
        """Ask for a wake-up, for what has been committed."""
        if not self._due:
            self._due = True
            with suppress(RuntimeError):  # the client is being closed
                self._thread.submit(self._run)

    def close(self) -> None:
        """Give the wake-up that is due, if any, and no further one."""
        self._thread.shutdown()

    def _run(self) -> None:
        self._due = False
        with suppress(OperationalError):
            self._wake()


class AsyncWaker:
    """Awaits `wake` in a task. As `Waker`."""

    def __init__(self, wake: Callable[[], Awaitable[object]]) -> None:
        self._wake = wake
        self._due = False
        self._running: asyncio.Task[None] | None = None

    def __call__(self) -> None:
        """Ask for a wake-up, for what has been committed."""
        self._due = True
        if not self._at_work():
            self._running = asyncio.create_task(self._run())

    async def join(self) -> None:
        """Give the wake-up that is due, if any."""
        if self._running is not None and self._at_work():
            await asyncio.wait([self._running])

    def _at_work(self) -> bool:
        return self._running is not None and not self._running.done()

    async def _run(self) -> None:
        while self._due:
            self._due = False
            with suppress(OperationalError):
                await self._wake()
