"""Spans and metrics by OpenTelemetry, with the extra `otel`.

Without it, or where no tracer provider is set, nothing here does anything. The trace of who sends
an event is kept with it, and each pass of the runs that it starts is a span of that trace. Where a
run was joined by several events it is that of the latest.

| metric | what | by |
|---|---|---|
| `jobspec.pass.duration` | seconds that passes took | job, outcome |
| `jobspec.run.wait` | seconds that runs were due before their first pass | job |
"""

from __future__ import annotations

import json
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from jobspec_engine.rows import Completion, Failure, Suspension

INSTALLED = find_spec("opentelemetry") is not None

if TYPE_CHECKING or INSTALLED:
    from opentelemetry import metrics, propagate, trace

    _tracer = trace.get_tracer("jobspec_engine")
    _meter = metrics.get_meter("jobspec_engine")
    _durations = _meter.create_histogram("jobspec.pass.duration", "s", "How long passes took")
    _waits = _meter.create_histogram("jobspec.run.wait", "s", "How long runs were due and waited")

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from jobspec_engine.rows import Claimed, Ended

# What is kept of a trace, in characters: W3C's headers have some hundreds, and baggage if wanted.
_LONGEST = 4096

_OUTCOMES = {Completion: "completed", Failure: "failed", Suspension: "suspended"}


def carried() -> str | None:
    """Return what to keep with an event of the trace that it is sent in, as JSON; None: of none."""
    if not INSTALLED:
        return None
    headers: dict[str, str] = {}
    propagate.inject(headers)
    if not headers:
        return None
    text = json.dumps(headers)
    return text if len(text) <= _LONGEST else None


def wanted() -> bool:
    """Tell whether anybody asked for spans: one that goes nowhere takes 30 µs."""
    return INSTALLED and not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


async def traced(
    run: Claimed, enter: Callable[[], Coroutine[Any, Any, Ended | None]]
) -> Ended | None:
    """Make a pass and measure it: as a span of the trace that its event carries."""
    job = {"jobspec.job_id": run.job_id}
    if run.waited is not None:
        _waits.record(run.waited.total_seconds(), job)
    began = time.perf_counter()
    with _tracer.start_as_current_span(
        f"run {run.job_id}",
        context=propagate.extract(json.loads(run.trace or "{}")),
        kind=trace.SpanKind.CONSUMER,
        attributes={
            **job,
            "jobspec.run_id": run.run_id,
            "jobspec.attempt": run.attempt,
            "jobspec.event_id": run.event_id,
            "jobspec.event_name": run.event_name,
        },
    ) as span:
        ended = await enter()
        outcome = "lost" if ended is None else _OUTCOMES[type(ended)]
        span.set_attribute("jobspec.outcome", outcome)
        if isinstance(ended, Failure):
            span.set_status(trace.StatusCode.ERROR, ended.message)
    _durations.record(time.perf_counter() - began, {**job, "jobspec.outcome": outcome})
    return ended
