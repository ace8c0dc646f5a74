"""Compiled jobs as JSON, as the engine has them, every default filled in."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from jobspec.durations import format_duration
from jobspec.keys import KeyTemplate
from jobspec.schedules import Schedule

if TYPE_CHECKING:
    from jobspec.jobs import CompiledJobs


def render(jobs: CompiledJobs) -> str:
    """Return `{"jobs": [...]}` with the fields of `CompiledJob`; options that are off are null."""
    return json.dumps({"jobs": [_plain(job) for job in jobs.jobs]}, indent=2) + "\n"


def _plain(value: Any) -> object:
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
