"""One attempt at a run: enter the handler, see how it ends, say what to record.

    claimed run → limits → context → handler → outcome → Completion | Failure

Nothing here touches the database: the worker records what comes out.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobspec_engine.context import Context
from jobspec_engine.errors import ResultError
from jobspec_engine.failure import failure
from jobspec_engine.handlers import is_async
from jobspec_engine.limits import Limits
from jobspec_engine.payload import encode
from jobspec_engine.rows import Claimed, Completion, Failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from concurrent.futures import Executor
    from uuid import UUID

    from jobspec_engine.handlers import Handler, Runnable


@dataclass(frozen=True, slots=True)
class Handlers:
    """What runs the jobs of a worker by job id, and the threads that sync handlers run in."""

    by_job: Mapping[str, Runnable]
    threads: Executor


async def attempt(run: Claimed, lease_token: UUID, handlers: Handlers) -> Completion | Failure:
    """Enter the handler of a claimed run, and return what to record.

    Raises `asyncio.CancelledError`, and nothing else, when the worker cancels it.
    """
    runnable = handlers.by_job[run.job_id]
    limits = Limits(run, runnable.timeouts)
    try:
        limits.require_time()
        value = await _in_time(limits, _enter(run, runnable.handler, handlers.threads))
        result = encode(value, "the handler's result", ResultError)
    except asyncio.CancelledError:
        if _cancelled_from_outside():
            raise
        error: BaseException = asyncio.CancelledError("the handler cancelled itself")
    except BaseException as raised:  # noqa: BLE001  SystemExit in a handler fails its run, not the worker
        error = raised
    else:
        return Completion(run.run_id, lease_token, result)
    return failure(run, lease_token, error, runnable.retries, runnable.timeouts.finish)


async def _in_time(limits: Limits, entered: Awaitable[object]) -> object:
    """Await a handler, and cancel it when it takes too long: then raise what its limit says."""
    seconds, too_long = limits.of_attempt()
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            return await entered
    except BaseException as error:
        if timer.expired() and not _cancelled_from_outside():
            raise too_long from error
        raise


async def _enter(run: Claimed, handler: Handler, threads: Executor) -> object:
    context = Context.of(run)
    if is_async(handler):
        return await _in_own_task(lambda: handler(context))
    values = contextvars.copy_context()
    ended = await asyncio.get_running_loop().run_in_executor(
        threads, lambda: values.run(_call, handler, context)
    )
    value = ended.get()
    return await _in_own_task(lambda: value) if inspect.isawaitable(value) else value


async def _in_own_task(call: Callable[[], Awaitable[object]]) -> object:
    """Await a call where the handler, if it cancels its task, cancels nothing of the worker's."""
    return (await asyncio.create_task(_await(call))).get()


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a handler ended. Neither a future nor a task can carry every error."""

    value: object = None
    error: BaseException | None = None

    def get(self) -> object:
        """Return its value or raise its error."""
        if self.error is not None:
            raise self.error
        return self.value


async def _await(call: Callable[[], Awaitable[object]]) -> _Ended:
    """Await a call. What it raises is returned: SystemExit in a task would end the event loop."""
    try:
        return _Ended(await call())
    except BaseException as error:  # noqa: BLE001  raised again by the caller
        return _Ended(error=error)


def _call(handler: Handler, context: Context) -> _Ended:
    """Call a sync handler. What it raises is returned: a future can't carry a StopIteration."""
    try:
        return _Ended(handler(context))
    except BaseException as error:  # noqa: BLE001  raised again by the caller
        return _Ended(error=error)


def _cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
