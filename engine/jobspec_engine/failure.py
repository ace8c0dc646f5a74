"""What is recorded of an attempt that failed."""

from __future__ import annotations

import json
import traceback
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from jobspec_engine.limits import OverdueError
from jobspec_engine.rows import Claimed, Failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from uuid import UUID

    from jobspec_engine.retries import Retries

# What is kept of an error: enough to find it, bounded since a traceback need not be.
_MAX_MESSAGE = 2_000
_MAX_TRACEBACK = 20_000

# The modules that call a handler, the same for each: nobody looks for their fault there.
_ENGINE = Path(__file__).parent
_WAY = {str(_ENGINE / name) for name in ("attempt.py", "threads.py")}


def failure(
    run: Claimed,
    lease_token: UUID,
    error: BaseException,
    retries: Retries,
    finish: timedelta | None,
) -> Failure:
    """Return what to record of an attempt that ended with `error`, and when its run is tried again.

    `finish` is how long the run may last, from its first claim on.
    """
    verdict = retries.verdict(error, run.attempt, run.max_attempts)
    message = _message(error)
    return Failure(
        run.run_id,
        lease_token,
        delay=verdict.delay,
        reason=verdict.reason,
        message=message.replace("\0", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode(),
        error=json.dumps(message),
        traceback=json.dumps(_tell(_traceback, error)[-_MAX_TRACEBACK:]),
        retry_at=verdict.at,
        finish=finish,
    )


def failed_words(failure: Failure) -> str:
    """Say in a line that an attempt failed, when the next is, and why; for a log."""
    message = " ".join(failure.message.split())
    if failure.retry_at is not None:
        return f"failed, the next is at {failure.retry_at.isoformat()}: {message}"
    if failure.delay is not None:
        return f"failed, the next is in {failure.delay.total_seconds():.3g} s: {message}"
    return f"failed, and there is no further one ({failure.reason}): {message}"


def message_of(error: BaseException) -> str:
    """Return what an error says of itself, bounded, without its class."""
    return _tell(lambda one: [str(one)], error)[:_MAX_MESSAGE]


def _traceback(error: BaseException) -> list[str]:
    """Return the traceback of an error from its handler on, and of what it came from."""
    whole = traceback.TracebackException.from_exception(error, compact=True)
    told: traceback.TracebackException | None = whole
    while told is not None:
        del told.stack[: _way_to_handler(told.stack)]
        told = told.__cause__ or told.__context__
    return list(whole.format())


def _way_to_handler(stack: traceback.StackSummary) -> int:
    """Return how many frames lead to the handler's own; none where the engine itself has failed."""
    way = sum(1 for _ in takewhile(lambda frame: frame.filename in _WAY, stack))
    within = way < len(stack) and Path(stack[way].filename).parent != _ENGINE
    return way if within else 0


def _message(error: BaseException) -> str:
    if isinstance(error, OverdueError):  # no error of the handler's, so that its class says nothing
        return str(error)
    return _tell(traceback.format_exception_only, error).strip()[:_MAX_MESSAGE]


def _tell(tell: Callable[[BaseException], list[str]], error: BaseException) -> str:
    """Format an error, which is the handler's own code and may fail at it."""
    try:
        return "".join(tell(error))
    except BaseException as failed:  # noqa: BLE001  it is one more way for a handler to fail
        return f"{type(error).__name__}, and {type(failed).__name__} when asked for more"
