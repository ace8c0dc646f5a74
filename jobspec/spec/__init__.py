"""Specs: what a person writes about jobs, in files or in Python, and how it is read."""

from __future__ import annotations

from jobspec.spec.declared import written
from jobspec.spec.fields import Findings
from jobspec.spec.models import (
    BatchEvents,
    Cancellation,
    Concurrency,
    Debounce,
    ErrorRetry,
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
from jobspec.spec.reading import read_file
from jobspec.spec.rules import ReadJob, check_jobs
from jobspec.spec.wording import suggestion

__all__ = [
    "BatchEvents",
    "Cancellation",
    "Concurrency",
    "Debounce",
    "ErrorRetry",
    "Findings",
    "Idempotency",
    "Job",
    "JobOptions",
    "Priority",
    "RateLimit",
    "ReadJob",
    "Retry",
    "Singleton",
    "Throttle",
    "Timeouts",
    "Trigger",
    "check_jobs",
    "read_file",
    "suggestion",
    "written",
]
