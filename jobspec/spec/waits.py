"""Times of one job that defeat each other: waits for a retry, and the timeouts of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.durations import format_duration
from jobspec.load import MappingNode

if TYPE_CHECKING:
    from datetime import timedelta

    from jobspec.diagnostics import Related
    from jobspec.jobs import CompiledJob
    from jobspec.load import Node
    from jobspec.spec.fields import Fields


def check_waits(job: CompiledJob, fields: Fields) -> None:
    """Report a `finish` that leaves no time for a retry, and an `attempt` that it cuts short."""
    timeouts = fields.value_of("timeouts")
    if job.timeouts is None or not isinstance(timeouts, MappingNode) or not job.timeouts.finish:
        return
    finish, attempt = timeouts.get("finish"), timeouts.get("attempt")
    if finish is not None:
        _check_first_retry(job, job.timeouts.finish, finish, fields)
    if attempt is not None and job.timeouts.attempt and job.timeouts.attempt > job.timeouts.finish:
        message = "`attempt` is longer than `finish`, which ends the run before"
        help_ = "make `attempt` shorter, or leave it out"
        fields.findings.report("JS413", attempt, message, help_)


def _check_first_retry(job: CompiledJob, limit: timedelta, finish: Node, fields: Fields) -> None:
    """Report a run that has ended before its first retry, where somebody asked for retries."""
    first = _shortest_first_wait(job)
    asked = [name for name in ("retries", "retry") if name in fields]
    if asked and job.retries and first is not None and first >= limit:
        related: tuple[Related, ...] = (fields.beside(asked[0], "retries are asked for here"),)
        message = (
            f"`finish` ends a run before its first retry, which waits {format_duration(first)}"
        )
        help_ = (
            "make `finish` longer, or the first wait shorter by `retry: {policy: fixed, delay: 1s}`"
        )
        fields.findings.report("JS412", finish, message, help_, related)


def _shortest_first_wait(job: CompiledJob) -> timedelta | None:
    """Return the shortest wait after a first attempt, whatever the error. None: there is none."""
    policies = (job.retry.backoff, *(one.backoff for one in job.retry.on))
    waits = [(one.after(1), one.jitter) for one in policies]
    return min((wait * (1 - jitter) for wait, jitter in waits if wait is not None), default=None)
