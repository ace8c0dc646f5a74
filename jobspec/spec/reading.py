"""A file of specs, read: from its tree to compiled jobs, with everything wrong reported."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jobspec.jobs import CompiledJob
from jobspec.load import MappingNode
from jobspec.spec import models, options
from jobspec.spec.events import DeclaredEvent, read_events
from jobspec.spec.fields import Fields, Findings, first_of, item_of, read_mapping
from jobspec.spec.places import placed_keys
from jobspec.spec.retries import retry
from jobspec.spec.rules import ReadJob, check_options
from jobspec.spec.triggers import triggers
from jobspec.spec.waits import check_waits
from jobspec.spec.wording import described

if TYPE_CHECKING:
    from jobspec.load import Node

MOST_RETRIES, RETRIES = 20, 4  # as in the reference's SDKs
OnMissing = Literal["skip", "reject"]
ON_MISSING: tuple[OnMissing, ...] = ("skip", "reject")
_HANDLER = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What one file declares: the jobs that have an id, and events."""

    jobs: tuple[ReadJob, ...] = ()
    events: tuple[DeclaredEvent, ...] = ()


def read_file(root: Node, findings: Findings, *, imports: bool = False) -> ReadFile:
    """Return what a file declares. Schemas that are models are imported where `imports` says so."""
    if not isinstance(root, MappingNode):
        message = f"a spec file is a mapping, and this is {described(root)}"
        findings.report("JS303", first_of(root), message, "write `jobs:` and a list of jobs")
        return ReadFile()
    fields = Fields(root, models.File, findings)
    events = fields.value_of("events")
    declared = () if events is None else read_events(events, findings, imports=imports)
    read = [read_job(item, findings) for item in fields.items("jobs")]
    return ReadFile(tuple(one for one in read if one is not None), declared)


def read_job(node: Node, findings: Findings) -> ReadJob | None:
    """Return one job, or None where it has no id to speak of it by."""
    mapping = read_mapping(node, item_of("jobs"), findings)
    if mapping is None:
        return None
    fields = Fields(mapping, models.Job, findings)
    job_id = fields.line("id")
    job = _compiled(job_id or "", fields)
    check_options(fields)
    check_waits(job, fields)
    if job_id and any(map(str.isspace, job_id)):
        _report_white_space(job_id, fields)
    return ReadJob(job, fields, placed_keys(mapping)) if job_id else None


def _report_white_space(job_id: str, fields: Fields) -> None:
    message = f"the job id `{job_id}` has white space in it"
    help_ = "write a dot or a dash in its place, such as `email.send`; `name` may have spaces"
    fields.findings.report("JS414", fields.node_of("id"), message, help_)


def _compiled(job_id: str, fields: Fields) -> CompiledJob:
    retries = fields.whole("retries", least=0, most=MOST_RETRIES)
    on_missing: OnMissing | None = fields.choice("on_missing", ON_MISSING)
    return CompiledJob(
        id=job_id,
        name=fields.line("name") or job_id,
        triggers=triggers(fields),
        handler=_handler(fields),
        retries=RETRIES if retries is None else retries,
        retry=retry(fields),
        idempotency=options.idempotency(fields),
        debounce=options.debounce(fields),
        rate_limit=options.rate_limit(fields),
        throttle=options.throttle(fields),
        concurrency=options.concurrency(fields),
        priority=options.priority(fields),
        batch_events=options.batch_events(fields),
        singleton=options.singleton(fields),
        cancel_on=options.cancel_on(fields),
        timeouts=options.timeouts(fields),
        on_missing=on_missing or "skip",
    )


def _handler(fields: Fields) -> str | None:
    """Read `handler`, the `module:name` of a function. Nothing is imported here."""
    text = fields.text("handler")
    if text is not None and not _HANDLER.fullmatch(text):
        message = f"`{text}` is not the place of a function"
        help_ = "write its module and its name, such as `myapp.jobs:send_email`"
        fields.findings.report("JS316", fields.node_of("handler"), message, help_)
        return None
    return text
