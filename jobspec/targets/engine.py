"""Compiled jobs as JSON, as the engine has them, every default filled in."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from jobspec.durations import format_duration
from jobspec.jobs import EventTrigger
from jobspec.keys import KeyTemplate
from jobspec.targets.unsupported import UnsupportedOption, require_supported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobspec.jobs import CompiledJob, CompiledJobs

UNSUPPORTED = {
    "rate_limit": "rateLimit",
    "throttle": "throttle",
    "concurrency": "concurrency",
    "priority": "priority",
    "batch_events": "batchEvents",
    "singleton": "singleton",
    "cancel_on": "cancelOn",
}
"""The options of a job that the engine can't honour: fields of `CompiledJob`, and what files say.

Besides, it knows neither conditions of triggers nor wildcards in the names of events.
"""


def render(jobs: CompiledJobs) -> str:
    """Return `{"jobs": [...]}` with the fields of `CompiledJob`; options that are off are null.

    Raises `TargetError` for options that the engine can't honour.
    """
    require_supported(jobs.jobs, "engine")
    return json.dumps({"jobs": [_plain(job) for job in jobs.jobs]}, indent=2) + "\n"


def unsupported(job: CompiledJob) -> Iterator[UnsupportedOption]:
    """Yield the options of a job that the engine can't honour."""
    for field, option in UNSUPPORTED.items():
        if getattr(job, field):
            yield UnsupportedOption((option,))
    for number, trigger in enumerate(job.triggers):
        if isinstance(trigger, EventTrigger) and trigger.condition is not None:
            yield UnsupportedOption(("triggers", number, "if"))
        if isinstance(trigger, EventTrigger) and "*" in trigger.event:
            yield UnsupportedOption(("triggers", number, "event"), trigger.event)


def _plain(value: Any) -> object:
    from jobspec.schedules import Schedule  # noqa: PLC0415  few specs need the time zones

    if isinstance(value, KeyTemplate | Schedule):
        return value.text
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in cast("tuple[object, ...]", value)]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if callable(value):
        return f"{value.__module__}:{value.__qualname__}"
    return value
