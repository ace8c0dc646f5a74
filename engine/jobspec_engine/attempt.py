"""One attempt at a run: enter the handler, see how it ends, say what to record.

    claimed run → context → handler → outcome → Completion | Failure

Nothing here touches the database: the worker records what comes out.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobspec_engine.backoff import delay_after
from jobspec_engine.context import Context
from jobspec_engine.errors import ResultError
from jobspec_engine.handlers import Handler, is_async
from jobspec_engine.payload import encode
from jobspec_engine.statements import Claimed, Completion, Failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from concurrent.futures import Executor
    from uuid import UUID

# What is kept of an error: enough to find it, bounded since a traceback need not be.
_MAX_MESSAGE = 2_000
_MAX_TRACEBACK = 20_000


@dataclass(frozen=True, slots=True)
class Handlers:
    """The handlers of a worker by job id, and the threads that the sync ones run in."""

    by_job: Mapping[str, Handler]
    threads: Executor


async def attempt(run: Claimed, lease_token: UUID, handlers: Handlers) -> Completion | Failure:
    """Enter the handler of a claimed run, and return what to record.

    Raises `asyncio.CancelledError`, and nothing else, when the worker cancels it.
    """
    try:
        value = await _enter(run, handlers)
        result = encode(value, "the handler's result", ResultError)
    except asyncio.CancelledError:
        if _cancelled_from_outside():
            raise
        return _failure(run, lease_token, asyncio.CancelledError("the handler cancelled itself"))
    except ResultError as error:  # it did its work, and would return the same again
        return _failure(run, lease_token, error, retriable=False)
    except BaseException as error:  # noqa: BLE001  SystemExit in a handler fails its run, not the worker
        return _failure(run, lease_token, error)
    return Completion(run.run_id, lease_token, result)


async def _enter(run: Claimed, handlers: Handlers) -> object:
    handler = handlers.by_job[run.job_id]
    context = Context.of(run)
    if is_async(handler):
        return await _in_own_task(lambda: handler(context))
    values = contextvars.copy_context()
    ended = await asyncio.get_running_loop().run_in_executor(
        handlers.threads, lambda: values.run(_call, handler, context)
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


def _failure(
    run: Claimed, lease_token: UUID, error: BaseException, *, retriable: bool = True
) -> Failure:
    retry = retriable and run.attempt < run.max_attempts
    message = _tell(traceback.format_exception_only, error).strip()[:_MAX_MESSAGE]
    return Failure(
        run.run_id,
        lease_token,
        delay=delay_after(run.attempt) if retry else None,
        reason="attempts-used" if retriable else "not-retriable",
        message=message.replace("\0", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode(),
        error=json.dumps(_entry(run, error, message)),
    )


def _entry(run: Claimed, error: BaseException, message: str) -> dict[str, object]:
    """Return an attempt's entry in the run's history."""
    trace = _tell(traceback.format_exception, error)
    return {"attempt": run.attempt, "error": message, "traceback": trace[-_MAX_TRACEBACK:]}


def _tell(tell: Callable[[BaseException], list[str]], error: BaseException) -> str:
    """Format an error, which is the handler's own code and may fail at it."""
    try:
        return "".join(tell(error))
    except BaseException as failed:  # noqa: BLE001  it is one more way for a handler to fail
        return f"{type(error).__name__}, and {type(failed).__name__} when asked for more"
