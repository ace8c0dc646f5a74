"""Handlers by name: found and imported before a worker claims anything."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from jobspec_engine.errors import HandlerError

if TYPE_CHECKING:
    from jobspec import CompiledJob, CompiledJobs

Handler = Callable[..., Any]


def load_handlers(jobs: CompiledJobs) -> Mapping[str, Handler]:
    """Return the handler of each job by job id.

    Raises `HandlerError` naming every job whose handler is missing, can't be imported or can't be
    called.
    """
    handlers: dict[str, Handler] = {}
    faults: list[str] = []
    for job in jobs.values():
        try:
            handlers[job.id] = _load(job)
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
    handler = _import(job.handler) if isinstance(job.handler, str) else job.handler
    if not callable(handler):
        raise HandlerError(f"handler `{job.handler}` can't be called")
    return handler


def _import(name: str) -> Any:
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise HandlerError(
            f"handler `{name}` needs the module `{error.name}`, which is not there: install it, or"
            " start the worker in the folder it is in"
        ) from error
    except Exception as error:
        raise HandlerError(
            f"importing `{module_name}` of handler `{name}` raised {type(error).__name__}: {error}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise HandlerError(f"`{module_name}` has no `{path}`, the handler it is to run")
        found = getattr(found, part)
    return found
