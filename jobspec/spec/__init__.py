"""Specs: what a person writes about jobs, in files or in Python, and how it is read."""

from __future__ import annotations

from jobspec.spec.declared import Declarations, written
from jobspec.spec.fields import Findings
from jobspec.spec.handlers import check_handlers
from jobspec.spec.models import (
    BatchEvents,
    Cancellation,
    Concurrency,
    Debounce,
    ErrorRetry,
    Event,
    Idempotency,
    Job,
    JobOptions,
    Priority,
    RateLimit,
    Retry,
    Singleton,
    Throttle,
    Timeouts,
    Trigger,
)
from jobspec.spec.reading import ReadFile, read_file
from jobspec.spec.rules import ReadJob, check_jobs
from jobspec.spec.typed import check_events
from jobspec.spec.wording import suggestion

__all__ = [
    "BatchEvents",
    "Cancellation",
    "Concurrency",
    "Debounce",
    "Declarations",
    "ErrorRetry",
    "Event",
    "Findings",
    "Idempotency",
    "Job",
    "JobOptions",
    "Priority",
    "RateLimit",
    "ReadFile",
    "ReadJob",
    "Retry",
    "Singleton",
    "Throttle",
    "Timeouts",
    "Trigger",
    "check_events",
    "check_handlers",
    "check_jobs",
    "read_file",
    "suggestion",
    "written",
]
