"""Calls of code that is not ours in a thread, with whatever they may raise."""

from __future__ import annotations

import asyncio
import contextvars
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How a call ended. A future can't carry every error."""

    value: object = None
    error: BaseException | None = None

    def get(self) -> object:
        """Return its value or raise its error."""
        if self.error is not None:
            raise self.error
        return self.value


async def in_thread(threads: Executor, call: Callable[[], object]) -> object:
    """Call in a thread, with the context variables of the caller."""
    values = contextvars.copy_context()
    ended = await asyncio.get_running_loop().run_in_executor(
        threads, lambda: values.run(_call, call)
    )
    return ended.get()


def _call(call: Callable[[], object]) -> _Outcome:
    """Call. What it raises is returned: a future can't carry a StopIteration."""
    try:
        return _Outcome(call())
    except BaseException as error:  # noqa: BLE001  raised again by the caller
        return _Outcome(error=error)
