"""Compiled jobs as the registration that the reference's own Python SDK would send for them.

Field by field what `inngest` 0.5.19 sends, but for what it can't send: fractions of a second, batch
timeouts of whole days (it writes `1d`, which the server refuses for those), and `cancelOn.match`,
which goes as the condition that it stands for. An option at its default is left to the server.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from jobspec.backoff import Retry
from jobspec.jobs import CronTrigger, EventTrigger
from jobspec.targets.unsupported import UnsupportedOption, require_supported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobspec.jobs import (
        BatchEvents,
        Cancellation,
        CompiledJob,
        CompiledJobs,
        Concurrency,
        Debounce,
        RateLimit,
        Singleton,
        Throttle,
        Timeouts,
        Trigger,
    )
    from jobspec.keys import KeyTemplate

APP, URL = "app", "http://127.0.0.1:8000/api/inngest"
RETRIES = 4  # what the server takes where the SDK sends none
DAY = timedelta(days=1)  # the reference's own window of idempotency
_UNITS = {
    "w": timedelta(weeks=1),
    "d": DAY,
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": timedelta(microseconds=1),
}
_LARGER_THAN_GO_HAS = ("w", "d")


def render(jobs: CompiledJobs, *, app: str = APP, url: str = URL) -> str:
    """Return the registration of an app, served at `url`, as JSON.

    Raises `TargetError` for options that the reference has not.
    """
    return json.dumps(registration(jobs, app=app, url=url), indent=2) + "\n"


def registration(jobs: CompiledJobs, *, app: str = APP, url: str = URL) -> dict[str, object]:
    """Return what `render` writes: the name and address of an app, and its functions.

    Raises `TargetError` for options that the reference has not.
    """
    require_supported(jobs.jobs, "inngest")
    return {
        "appname": app,
        "url": url,
        "functions": [_function(job, app, url) for job in jobs.jobs],
    }


def unsupported(job: CompiledJob) -> Iterator[UnsupportedOption]:
    """Yield the options of a job that the reference has not."""
    if job.on_missing != "skip":
        yield UnsupportedOption(("on_missing",))
    if job.idempotency and job.idempotency.window not in ("forever", DAY):
        yield UnsupportedOption(("idempotency", "window"))
    if job.retry != Retry():
        yield UnsupportedOption(("retry",))
    for number, trigger in enumerate(job.triggers):
        if isinstance(trigger, CronTrigger) and trigger.missed != "skip":
            yield UnsupportedOption(("triggers", number, "missed"))
    if job.timeouts and job.timeouts.attempt:
        yield UnsupportedOption(("timeouts", "attempt"))


def _function(job: CompiledJob, app: str, url: str) -> dict[str, object]:
    function_id = f"{app}-{job.id}"
    return {
        "id": function_id,
        "name": job.name,
        "triggers": [_trigger(one) for one in job.triggers],
        "steps": {
            "step": _step(job, f"{url}?{urlencode({'fnId': function_id, 'stepId': 'step'})}")
        },
        "idempotency": job.idempotency.key.text if job.idempotency else None,
        "debounce": _debounce(job.debounce) if job.debounce else None,
        "rateLimit": _rate_limit(job.rate_limit) if job.rate_limit else None,
        "throttle": _throttle(job.throttle) if job.throttle else None,
        "concurrency": [_concurrency(one) for one in job.concurrency] or None,
        "priority": {"run": job.priority} if job.priority else None,
        "batchEvents": _batch(job.batch_events) if job.batch_events else None,
        "singleton": _singleton(job.singleton) if job.singleton else None,
        "cancel": [_cancellation(one) for one in job.cancel_on] or None,
        "timeouts": _timeouts(job.timeouts) if job.timeouts else None,
    }


def _trigger(trigger: Trigger) -> dict[str, object]:
    if isinstance(trigger, EventTrigger):
        return {"event": trigger.event, "expression": trigger.condition}
    return _cron(trigger)


def _cron(trigger: CronTrigger) -> dict[str, object]:
    return {"cron": trigger.schedule.text, "jitter": _duration(trigger.jitter or None)}


def _step(job: CompiledJob, url: str) -> dict[str, object]:
    retries = None if job.retries == RETRIES else {"attempts": job.retries}
    kind = "ws" if url.startswith("wss://") else "http"
    runtime = {"type": kind, "url": url}
    return {"id": "step", "name": "step", "retries": retries, "runtime": runtime}


def _debounce(debounce: Debounce) -> dict[str, object]:
    return {
        "key": _key(debounce.key),
        "period": _duration(debounce.period),
        "timeout": _duration(debounce.timeout),
    }


def _rate_limit(limit: RateLimit) -> dict[str, object]:
    return {"key": _key(limit.key), "limit": limit.limit, "period": _duration(limit.period)}


def _throttle(throttle: Throttle) -> dict[str, object]:
    return {
        "key": _key(throttle.key),
        "limit": throttle.limit,
        "period": _duration(throttle.period),
        "burst": throttle.burst,
    }


def _concurrency(limit: Concurrency) -> dict[str, object]:
    scope = None if limit.scope == "fn" else limit.scope
    return {"key": _key(limit.key), "limit": limit.limit, "scope": scope}


def _batch(batch: BatchEvents) -> dict[str, object]:
    return {
        "maxSize": batch.max_size,
        "timeout": _duration(batch.timeout, without=_LARGER_THAN_GO_HAS),
        "key": _key(batch.key),
        "if": batch.condition,
    }


def _singleton(singleton: Singleton) -> dict[str, object]:
    return {"key": _key(singleton.key), "mode": singleton.mode}


def _cancellation(one: Cancellation) -> dict[str, object]:
    return {"event": one.event, "if": _condition(one), "timeout": _duration(one.timeout)}


def _condition(one: Cancellation) -> str | None:
    if one.match is None:
        return one.condition
    equal = f"event.{one.match} == async.{one.match}"
    return f"({one.condition}) && {equal}" if one.condition else equal


def _timeouts(timeouts: Timeouts) -> dict[str, object]:
    return {"start": _duration(timeouts.start), "finish": _duration(timeouts.finish)}


def _key(template: KeyTemplate | None) -> str | None:
    return None if template is None else template.text


def _duration(length: timedelta | None, without: tuple[str, ...] = ()) -> str | None:
    """Return a length of time in the largest unit that leaves no rest, as the SDK does."""
    if length is None:
        return None
    units = {unit: one for unit, one in _UNITS.items() if unit not in without}
    unit = next(unit for unit, one in units.items() if not length % one)
    return f"{length // units[unit]}{unit}"
