"""What the engine can run: a job with an option that it can't honour is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec import CompiledJob, CompiledJobs, EventTrigger
from jobspec_engine.errors import UnsupportedOptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNSUPPORTED = {
    "rate_limit": "rateLimit",
    "throttle": "throttle",
    "concurrency": "concurrency",
    "priority": "priority",
    "batch_events": "batchEvents",
    "singleton": "singleton",
    "cancel_on": "cancelOn",
}


def require_supported(jobs: CompiledJobs) -> None:
    """Raise `UnsupportedOptionError` naming every job and option that the engine can't honour."""
    found = [text for job in jobs.values() for text in _unsupported(job)]
    if found:
        raise UnsupportedOptionError("the engine can't honour " + ", ".join(found))


def _unsupported(job: CompiledJob) -> Iterator[str]:
    for attribute, option in _UNSUPPORTED.items():
        if getattr(job, attribute):
            yield f"`{option}` of job `{job.id}`"
    for number, trigger in enumerate(job.triggers):
        if isinstance(trigger, EventTrigger) and trigger.condition is not None:
            yield f"`triggers[{number}].if` of job `{job.id}`"
        if isinstance(trigger, EventTrigger) and "*" in trigger.event:
            yield f"the wildcard `{trigger.event}` in `triggers[{number}].event` of job `{job.id}`"
