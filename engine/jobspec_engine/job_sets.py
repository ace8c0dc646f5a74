"""Several sets of compiled jobs as one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from jobspec import CompiledJobs
from jobspec_engine.arguments import require_compiled
from jobspec_engine.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Sequence


def merged(jobs: CompiledJobs | Sequence[CompiledJobs]) -> CompiledJobs:
    """Return several sets of jobs as one.

    Raises `WorkerError` for an id that is in two of them, `TypeError` for jobs not compiled.
    """
    if isinstance(jobs, CompiledJobs):
        return jobs
    if not isinstance(jobs, list | tuple):
        require_compiled(jobs)
    for one in jobs:
        require_compiled(one)
    every = tuple(job for one in jobs for job in one.jobs)
    twice = [job_id for job_id, number in Counter(job.id for job in every).items() if number > 1]
    if twice:
        names = ", ".join(f"`{job_id}`" for job_id in twice)
        raise WorkerError(f"more than one set of jobs has {names}: give each job an id of its own")
    return CompiledJobs(every)
