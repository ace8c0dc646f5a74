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
from jobspec_engine.errors import ResultError
from jobspec_engine.failure import failure
from jobspec_engine.limits import Limits
from jobspec_engine.passes import LeaseLost, Pass, Suspended
from jobspec_engine.payload import encode
from jobspec_engine.rows import Completion, Suspension
from jobspec_engine.steps import Steps
from jobspec_engine.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Executor

    from jobspec_engine.entry import Entry
    from jobspec_engine.handlers import Runnable
    from jobspec_engine.journal import Journal
    from jobspec_engine.rows import Ended


@dataclass(frozen=True, slots=True)
class Handlers:
    """What runs the jobs of a worker by job id, and the threads that sync handlers run in."""

    by_job: Mapping[str, Runnable]
    threads: Executor


async def attempt(entry: Entry, handlers: Handlers, journal: Journal) -> Ended | None:
    """Enter the handler of a claimed run, and return what to record; None: the lease was lost.

    The handler runs in the task that awaits this. Raises `asyncio.CancelledError` when the worker
    has left the entry, and nothing else.
    """
    run, held = entry.run, entry.held
    runnable = handlers.by_job[run.job_id]
    this_pass = Pass(run, held, journal)
    context = Context.of(run, this_pass.event, Steps(this_pass, handlers.threads))
    result = "null"
    error: BaseException | None = None
    try:
        this_pass.require_going_on()  # this process may have been frozen since the claim
        if runnable.timeouts is None:
            value = await _call(entry, context, runnable, handlers.threads)
        else:
            limits = Limits(run, runnable.timeouts)
            value = await _call_within(limits, entry, context, runnable, handlers.threads)
        result = encode(value, "the handler's result", ResultError)
        if entry.task.cancelling() and not entry.left:
            await asyncio.sleep(0)  # the handler cancelled itself, and that has not reached it yet
    except BaseException as raised:
        if entry.left and isinstance(raised, asyncio.CancelledError):
            raise
        error = raised
    finish = None if runnable.timeouts is None else runnable.timeouts.finish
    match await this_pass.conclude(error):
        case None:
            return Completion(*held, result)
        case LeaseLost():
            return None
        case Suspended():
            return Suspension(*held, this_pass.wake_at, finish)
        case failed:
            return failure(run, held.lease_token, failed, runnable.retries, finish)


async def _call_within(
    limits: Limits, entry: Entry, context: Context, runnable: Runnable, threads: Executor
) -> object:
    """Await a handler, and cancel it when it takes too long: then raise what its limit says."""
    limits.require_time()
    seconds, too_long = limits.of_attempt()
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            return await _call(entry, context, runnable, threads)
    except BaseException as error:
        if timer.expired() and not entry.left:
            raise too_long from error
        raise


async def _call(entry: Entry, context: Context, runnable: Runnable, threads: Executor) -> object:
    handler = runnable.handler
    if runnable.is_async:
        context.step.enter(entry.task)
        return await handler(context)
    value = await in_thread(threads, lambda: handler(context))
    return await value if inspect.isawaitable(value) else value
