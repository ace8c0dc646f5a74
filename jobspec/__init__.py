"""Check background-job specs, compile them to typed configs, resolve their keys.

jobs = jobspec.compile("jobs/")                    # CompiledJobs, or CompileError
findings = jobspec.check("jobs/")                  # Diagnostics; never raises on bad input
key = jobspec.KeyTemplate.parse("event.data.id")   # a function of the event
"""

from __future__ import annotations

from jobspec.backoff import Backoff
from jobspec.compile import check, compile  # noqa: A004  the word for what it does
from jobspec.diagnostics import CompileError, Diagnostic
from jobspec.jobs import CompiledJob, CompiledJobs, CronTrigger, EventTrigger, Timeouts
from jobspec.keys import EventError, Key, KeyTemplate, KeyTemplateError
from jobspec.registry import Registry
from jobspec.settings import project_paths
from jobspec.targets import TargetError
from jobspec.targets.unsupported import require_supported

__all__ = [
    "Backoff",
    "CompileError",
    "CompiledJob",
    "CompiledJobs",
    "CronTrigger",
    "Diagnostic",
    "EventError",
    "EventTrigger",
    "Key",
    "KeyTemplate",
    "KeyTemplateError",
    "Registry",
    "TargetError",
    "Timeouts",
    "check",
    "compile",
    "project_paths",
    "require_supported",
]
