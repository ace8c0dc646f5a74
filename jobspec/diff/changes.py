"""Two sets of compiled jobs, compared by what they mean.

White space and quotes of a key or a condition, the unit of a duration and the order of triggers are
no differences, since what is compiled is compared and not what was written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from jobspec.diff.effects import (
    HANDLER,
    JOB_ADDED,
    JOB_REMOVED,
    JOB_RENAMED,
    TRIGGER_ADDED,
    TRIGGER_REMOVED,
    Effect,
    Harm,
    effect_of,
    effect_of_window,
)
from jobspec.durations import format_duration
from jobspec.jobs import CompiledJob, CronTrigger, EventTrigger
from jobspec.keys import KeyTemplate
from jobspec.keys.terms import Field
from jobspec.spec.models import file_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jobspec.jobs import Trigger

# Compared option by option; `on_missing` and the like are values of their own.
_OPTIONS = (
    "retries",
    "retry",
    "idempotency",
    "debounce",
    "rate_limit",
    "throttle",
    "concurrency",
    "priority",
    "batch_events",
    "singleton",
    "cancel_on",
    "timeouts",
    "on_missing",
    "handler",
)
_BY_FIELD = ("idempotency", "debounce", "rate_limit", "throttle", "batch_events", "singleton")
_SPACE_OUTSIDE_QUOTES = re.compile(r"""('[^']*'|"[^"]*")|\s+""")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: of a job as a whole, where `option` is None, or of an option of it.

    `old` and `new` are shown as a spec has them; None where there is nothing.
    """

    job: str
    option: str | None
    old: str | None
    new: str | None
    harm: Harm
    effect: str


def differences(
    old: Mapping[str, CompiledJob], new: Mapping[str, CompiledJob]
) -> tuple[Change, ...]:
    """Return what changes from some jobs to others: by job, in the order of the new ones."""
    renamed = _renamed(old, new)
    found: list[Change] = []
    for job_id, job in new.items():
        if job_id in old:
            found += _of_job(old[job_id], job)
        elif job_id in renamed:
            found.append(_job(job_id, renamed[job_id], job_id, JOB_RENAMED))
        else:
            found.append(_job(job_id, None, job_id, JOB_ADDED))
    for job_id in old:
        if job_id not in new and job_id not in renamed.values():
            found.append(_job(job_id, job_id, None, JOB_REMOVED))
    return tuple(found)


def _job(job_id: str, old: str | None, new: str | None, effect: Effect) -> Change:
    return Change(job_id, None, old, new, effect.harm, effect.text)


def _renamed(old: Mapping[str, CompiledJob], new: Mapping[str, CompiledJob]) -> dict[str, str]:
    """Return the old id of each new job that is an old one in all but its name."""
    gone = {_content(job): job_id for job_id, job in old.items() if job_id not in new}
    found: dict[str, str] = {}
    for job_id, job in new.items():
        if job_id not in old and (before := gone.pop(_content(job), None)) is not None:
            found[job_id] = before
    return found


def _content(job: CompiledJob) -> object:
    triggers = tuple(sorted(map(_trigger, job.triggers)))
    return (triggers, tuple(_shown(getattr(job, name)) for name in _OPTIONS))


def _of_job(old: CompiledJob, new: CompiledJob) -> Iterator[Change]:
    yield from _of_triggers(old, new)
    for name in _OPTIONS:
        before, after = _given(old, name), _given(new, name)
        if name in _BY_FIELD and before is not None and after is not None:
            yield from _of_fields(old.id, file_name(name), before, after)
        elif not _same(before, after):
            yield _of_option(old.id, file_name(name), before, after)


def _given(job: CompiledJob, option: str) -> Any:
    value = getattr(job, option)
    return None if value == () else value


def _of_triggers(old: CompiledJob, new: CompiledJob) -> Iterator[Change]:
    before = {_trigger(one) for one in old.triggers}
    after = {_trigger(one) for one in new.triggers}
    for text in sorted(after - before):
        yield _option(old.id, "triggers", None, text, TRIGGER_ADDED)
    for text in sorted(before - after):
        yield _option(old.id, "triggers", text, None, TRIGGER_REMOVED)


def _trigger(trigger: Trigger) -> str:
    if isinstance(trigger, EventTrigger):
        condition = f" if {_spaced(trigger.condition)}" if trigger.condition else ""
        return f"event {trigger.event}{condition}"
    return _cron(trigger)


def _cron(trigger: CronTrigger) -> str:
    jitter = f" jitter {format_duration(trigger.jitter)}" if trigger.jitter else ""
    missed = "" if trigger.missed == "skip" else f" missed {trigger.missed}"
    return f"cron {_spaced(trigger.schedule.text)}{jitter}{missed}"


def _of_fields(job: str, option: str, old: Any, new: Any) -> Iterator[Change]:
    for field in fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        name = f"{option}.{file_name(field.name)}"
        if _same(before, after):
            continue
        if name == "idempotency.window":
            effect = effect_of_window(before, after)
            yield _option(job, name, _shown(before), _shown(after), effect)
        else:
            yield _of_option(job, name, before, after)


def _of_option(job: str, option: str, old: object, new: object) -> Change:
    kind = "added" if old is None else "removed" if new is None else "changed"
    effect = HANDLER if option == "handler" else effect_of(option, kind)
    return _option(job, option, _shown(old), _shown(new), effect)


def _option(job: str, option: str, old: str | None, new: str | None, effect: Effect) -> Change:
    return Change(job, option, old, new, effect.harm, effect.text)


def _same(old: object, new: object) -> bool:
    if isinstance(old, KeyTemplate) and isinstance(new, KeyTemplate):
        return meaning(old) == meaning(new)
    return _shown(old) == _shown(new)


def meaning(template: KeyTemplate) -> tuple[tuple[str, ...] | str, ...]:
    """Return the paths and texts that a template adds, texts that follow each other as one."""
    found: list[tuple[str, ...] | str] = []
    for term in template.terms:
        if isinstance(term, Field):
            found.append(term.path)
        elif found and isinstance(found[-1], str):
            found[-1] += term.text
        else:
            found.append(term.text)
    return tuple(found)


def _shown(value: object) -> str | None:
    """Return a value as a spec has it, in one form for all ways to write it."""
    if value is None:
        return None
    if isinstance(value, KeyTemplate):
        return str(value)
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, tuple):
        return ", ".join(_shown(one) or "" for one in cast("tuple[object, ...]", value))
    if is_dataclass(value):
        return _shown_fields(value)
    if isinstance(value, FunctionType):
        return f"{value.__module__}:{value.__qualname__}"
    return _spaced(str(value))


def _shown_fields(value: Any) -> str:
    shown = {file_name(one.name): _shown(getattr(value, one.name)) for one in fields(value)}
    return "{" + ", ".join(f"{name}: {text}" for name, text in shown.items() if text) + "}"


def _spaced(text: str) -> str:
    """Return a condition or a schedule with one space for each gap outside of quotes."""
    return _SPACE_OUTSIDE_QUOTES.sub(lambda found: found[1] or " ", text.strip())
