"""What becomes of a failed attempt: when its run is tried again, or why it is not."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from jobspec_engine.errors import (
    HandlerError,
    NonRetriable,
    ResultError,
    RetryAfter,
    StepDrift,
    StepFailed,
    checked_wait,
)
from jobspec_engine.imports import import_named
from jobspec_engine.limits import OverdueError

if TYPE_CHECKING:
    from jobspec import Backoff, CompiledJob


class Verdict(NamedTuple):
    """When a run is tried again: after `delay`, or at `at`; with neither it ends, for `reason`."""

    reason: str
    delay: timedelta | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Retries:
    """How the failed attempts of a job are retried, with the classes of errors at hand."""

    backoff: Backoff
    on: tuple[tuple[type[BaseException], Backoff], ...] = ()

    @classmethod
    def of(cls, job: CompiledJob) -> Retries:
        """Return how a job is retried.

        Raises `HandlerError` for an error that can't be imported or is no class of errors.
        """
        on = tuple((_error_class(one.error), one.backoff) for one in job.retry.on)
        return cls(job.retry.backoff, on)

    def verdict(self, error: BaseException, attempt: int, max_attempts: int) -> Verdict:
        """Judge attempt number `attempt`, counted from 1, which ended with `error`.

        A wait's jitter is drawn here, once; the run keeps the time that comes of it.
        """
        if isinstance(error, OverdueError):
            return Verdict(error.reason)
        if isinstance(error, StepDrift):
            return Verdict("step-drift")
        backoff = self._of(error)
        wait = backoff.after(attempt)
        # A result that can't be kept: the handler did its work, and would return the same again.
        if wait is None or isinstance(error, NonRetriable | ResultError) or _is_final(error):
            return Verdict("not-retriable")
        if attempt >= max_attempts:
            return Verdict("attempts-used")
        stated = _stated(error) if isinstance(error, RetryAfter) else None
        return stated or Verdict("attempts-used", delay=wait * _drawn(backoff.jitter))

    def _of(self, error: BaseException) -> Backoff:
        """Return the backoff of the first class that the error belongs to."""
        fitting = (backoff for kind, backoff in self.on if isinstance(error, kind))
        return next(fitting, self.backoff)


def _is_final(error: BaseException) -> bool:
    return isinstance(error, StepFailed) and error.final


def _error_class(name: str) -> type[BaseException]:
    found = import_named(name, "error")
    if isinstance(found, type) and issubclass(found, BaseException):
        return found
    raise HandlerError(f"error `{name}` of its `retry` is not a class of errors")


def _stated(error: RetryAfter) -> Verdict | None:
    """Return the verdict of the handler's own. None where a class below has made it no time."""
    try:
        after = checked_wait(getattr(error, "after", None))
    except ValueError:
        return None
    if isinstance(after, datetime):
        return Verdict("attempts-used", at=after)
    return Verdict("attempts-used", delay=after)


def _drawn(jitter: float) -> float:
    return 1 + random.uniform(-jitter, jitter)  # noqa: S311  it spreads load, and hides nothing
