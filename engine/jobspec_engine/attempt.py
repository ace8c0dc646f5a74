"""One attempt at a run: enter the handler, see how it ends, say what to record.

    claimed run → limits → context → handler → outcome → Completion | Failure | Suspension

Nothing here touches the database: steps do in between, and the worker records what comes out.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobspec_engine.context import Context
from jobspec_engine.ended import in_own_task, in_thread
from jobspec_engine.errors import ResultError
from jobspec_engine.failure import failure
from jobspec_engine.limits import Limits
from jobspec_engine.passes import LeaseLost, Pass, Suspended
from jobspec_engine.payload import encode
from jobspec_engine.rows import Claimed, Completion, Failure, Held, Suspension
from jobspec_engine.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from concurrent.futures import Executor

    from jobspec_engine.handlers import Runnable
    from jobspec_engine.journal import Journal


@dataclass(frozen=True, slots=True)
class Handlers:
    """What runs the jobs of a worker by job id, and the threads that sync handlers run in."""

    by_job: Mapping[str, Runnable]
    threads: Executor


async def attempt(
    run: Claimed, held: Held, handlers: Handlers, journal: Journal
) -> Completion | Failure | Suspension | None:
    """Enter the handler of a claimed run, and return what to record; None: the lease was lost.

    Raises `asyncio.CancelledError`, and nothing else, when the worker cancels it.
    """
    runnable = handlers.by_job[run.job_id]
    limits = Limits(run, runnable.timeouts)
    this_pass = Pass(run, held, journal)
    context = Context.of(run, Steps(this_pass, handlers.threads))
    result = "null"
    error: BaseException | None = None
    try:
        limits.require_time()
        value = await _in_time(limits, _enter(context, runnable, handlers.threads))
        result = encode(value, "the handler's result", ResultError)
    except asyncio.CancelledError:
        if _cancelled_from_outside():
            raise
        error = asyncio.CancelledError("the handler cancelled itself")
    except BaseException as raised:  # noqa: BLE001  SystemExit in a handler fails its run, not the worker
        error = raised
    finish = runnable.timeouts.finish
    match await this_pass.conclude(error):
        case None:
            return Completion(*held, result)
        case LeaseLost():
            return None
        case Suspended():
            return Suspension(*held, this_pass.wake_at, finish)
        case failed:
            return failure(run, held.lease_token, failed, runnable.retries, finish)


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


async def _enter(context: Context, runnable: Runnable, threads: Executor) -> object:
    handler = runnable.handler
    if runnable.is_async:
        return await in_own_task(lambda: context.step.entered(handler(context)))
    value = await in_thread(threads, lambda: handler(context))
    return await in_own_task(lambda: value) if inspect.isawaitable(value) else value


def _cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
