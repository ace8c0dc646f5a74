"""What no single field can be blamed for: options that can't go together, jobs that collide.

The reference accepts most of these and then drops one of the two in silence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobspec.diagnostics import Related

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobspec.jobs import CompiledJob
    from jobspec.spec.fields import Fields, Findings
    from jobspec.spec.places import PlacedKey

NOT_WITH_BATCHES = ("debounce", "singleton", "cancelOn", "priority")


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A job, the fields it was read from, and its keys, also those of options that are broken."""

    job: CompiledJob
    fields: Fields
    keys: tuple[PlacedKey, ...] = ()


def check_options(fields: Fields) -> None:
    """Report options of one job that can't go together."""
    if "batchEvents" in fields:
        for other in NOT_WITH_BATCHES:
            if other in fields:
                _report_batch_with(fields, other)
    if "idempotency" in fields and "rateLimit" in fields:
        _report_overwritten_rate_limit(fields)


def _report_batch_with(fields: Fields, other: str) -> None:
    """As the reference refuses it (configs.jsonl)."""
    message = f"`{other}` can't go with `batchEvents`"
    related = (fields.beside("batchEvents", "this job takes events in batches"),)
    fields.findings.report("JS402", fields.key_of(other), message, "remove one of them", related)


def _report_overwritten_rate_limit(fields: Fields) -> None:
    """Report what the reference does: it keeps one limit for both, that of idempotency."""
    message = "`rateLimit` does nothing beside `idempotency`, which overwrites it"
    related = (fields.beside("idempotency", "this takes its place"),)
    help_ = "remove one of them"
    fields.findings.report("JS401", fields.key_of("rateLimit"), message, help_, related)


def check_jobs(jobs: Iterable[ReadJob], findings: Findings) -> None:
    """Report jobs of all files that collide: the same id, or the same triggers and keys."""
    ids: dict[object, Fields] = {}
    copies: dict[object, Fields] = {}
    for read in jobs:
        first = ids.setdefault(read.job.id, read.fields)
        if first is not read.fields:
            _report_same_id(read, first, findings)
        alike = copies.setdefault(_what_it_does(read.job) or read.job.id, read.fields)
        if alike is not read.fields and alike is not first:
            _report_copy(read, alike, findings)


def _report_same_id(read: ReadJob, first: Fields, findings: Findings) -> None:
    message = f"the job id `{read.job.id}` is used twice"
    other = first.node_of("id")
    related = (Related("first used here", other.source, other.span),)
    help_ = "give every job an id of its own"
    findings.report("JS309", read.fields.node_of("id"), message, help_, related)


def _what_it_does(job: CompiledJob) -> object:
    """Return what two jobs must share to look like copies; None where one has no trigger or key."""
    options = (job.idempotency, job.debounce, job.rate_limit, job.throttle, job.singleton)
    keys = tuple(None if option is None else option.key for option in options)
    return (frozenset(job.triggers), keys) if job.triggers and any(keys) else None


def _report_copy(read: ReadJob, alike: Fields, findings: Findings) -> None:
    other = alike.node_of("id")
    message = f"`{read.job.id}` has the same triggers and keys as `{other.plain()}`"
    related = (Related("the other job", other.source, other.span),)
    help_ = "every event starts both; remove one if it is a copy"
    findings.report("JS406", read.fields.node_of("id"), message, help_, related)
