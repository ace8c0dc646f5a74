"""What runs a job: found and imported before a worker claims anything."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobspec_engine.errors import HandlerError
from jobspec_engine.imports import import_named
from jobspec_engine.retries import Retries

if TYPE_CHECKING:
    from jobspec import CompiledJob, CompiledJobs, Timeouts

Handler = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Runnable:
    """The handler of a job, how its failures are retried, and how long it may take."""

    handler: Handler
    is_async: bool
    retries: Retries
    timeouts: Timeouts | None


def load_handlers(jobs: CompiledJobs) -> Mapping[str, Runnable]:
    """Return what runs each job by job id.

    Raises `HandlerError` naming every job whose handler is missing, can't be imported or can't be
    called, or which names an error that is no class of errors.
    """
    handlers: dict[str, Runnable] = {}
    faults: list[str] = []
    for job in jobs.values():
        try:
            handler = _load(job)
            handlers[job.id] = Runnable(handler, is_async(handler), Retries.of(job), job.timeouts)
        except HandlerError as fault:
            faults.append(f"job `{job.id}`: {fault}")
    if faults:
        raise HandlerError("\n".join(faults))
    return handlers


def is_async(handler: Handler) -> bool:
    """Tell whether a handler runs in the event loop; a sync one runs in a thread."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004  an object with an async __call__
    )


def _load(job: CompiledJob) -> Handler:
    if job.handler is None:
        raise HandlerError("it has no handler; write `handler: module:function`")
    handler = import_named(job.handler, "handler") if isinstance(job.handler, str) else job.handler
    if not callable(handler):
        raise HandlerError(f"handler `{job.handler}` can't be called")
    return handler
