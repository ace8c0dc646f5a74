"""Spans and metrics: a run belongs to the trace of its event; without the extra there are none."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from enginekit import job, jobs, run_until_idle
from jobspec_engine import Client, Event, telemetry


@pytest.fixture(scope="module")
def exporter():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture(scope="module")
def reader():
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    return reader


@pytest.fixture
def spans(exporter):
    exporter.clear()
    return exporter


async def test_a_run_belongs_to_the_trace_in_which_its_event_was_sent(dsn, spans):
    inside = []

    async def handler(context):
        inside.append(trace.get_current_span().get_span_context().span_id)

    compiled = job(handler=handler)
    with Client(compiled, dsn) as client, trace.get_tracer("test").start_as_current_span("order"):
        sent = client.send("event", {}, id="e")
    await run_until_idle(compiled, dsn)
    order, run = spans.get_finished_spans()
    assert (run.name, run.kind) == ("run job", trace.SpanKind.CONSUMER)
    assert run.context.trace_id == order.context.trace_id
    assert run.parent.span_id == order.context.span_id
    assert inside == [run.context.span_id]
    assert run.attributes == {
        "jobspec.job_id": "job",
        "jobspec.run_id": sent.jobs[0].run_id,
        "jobspec.attempt": 1,
        "jobspec.event_id": "e",
        "jobspec.event_name": "event",
        "jobspec.outcome": "completed",
    }


async def test_a_run_that_a_step_starts_belongs_to_the_trace_of_its_parent(dsn, spans):
    async def parent(context):
        return await context.step.invoke("child", {})

    async def child(context):
        return "done"

    compiled = jobs(
        parent={"event": "event", "handler": parent}, child={"event": "other", "handler": child}
    )
    with Client(compiled, dsn) as client, trace.get_tracer("test").start_as_current_span("order"):
        client.send("event", {})
    await run_until_idle(compiled, dsn)
    by_name = {span.name: span for span in spans.get_finished_spans()}
    assert by_name["run child"].context.trace_id == by_name["order"].context.trace_id


async def test_a_sync_handler_is_inside_the_span_of_its_pass_too(dsn, spans):
    inside = []

    def handler(context):
        inside.append(trace.get_current_span().get_span_context().span_id)

    compiled = job(handler=handler)
    with Client(compiled, dsn) as client:
        client.send("event", {})
    await run_until_idle(compiled, dsn)
    (run,) = spans.get_finished_spans()
    assert (run.parent, inside) == (None, [run.context.span_id])


async def test_a_span_and_a_metric_tell_that_a_pass_failed(dsn, spans, reader):
    async def handler(context):
        raise ValueError("no such order")

    compiled = job("failing", handler=handler, retries=0)
    with Client(compiled, dsn) as client:
        client.send("event", {})
    await run_until_idle(compiled, dsn)
    (run,) = spans.get_finished_spans()
    assert not run.status.is_ok
    assert "no such order" in run.status.description
    by_job = {"jobspec.job_id": "failing"}
    assert measured(reader, "jobspec.pass.duration", by_job | {"jobspec.outcome": "failed"}) == 1
    assert measured(reader, "jobspec.run.wait", by_job) == 1


def measured(reader, name, attributes):
    """Return how often something was measured."""
    data = json.loads(reader.get_metrics_data().to_json())
    (scope,) = data["resource_metrics"][0]["scope_metrics"]
    (metric,) = [one for one in scope["metrics"] if one["name"] == name]
    (point,) = [one for one in metric["data"]["data_points"] if one["attributes"] == attributes]
    return point["count"]


def test_the_events_of_a_bulk_carry_the_trace_in_which_it_was_sent(dsn, connection, spans):
    events = [Event("event", {}), Event("event", {}, id="named")]
    with Client(job(), dsn) as client, trace.get_tracer("test").start_as_current_span("order"):
        client.send_many(events)
        expected = telemetry.carried()
    kept = connection.execute("select trace from jobspec.job_event").fetchall()
    assert kept == [(expected,)] * 2


async def test_an_event_that_is_sent_in_no_trace_carries_none(dsn, connection):
    with Client(job(), dsn) as client:
        client.send("event", {})
    assert connection.execute("select trace from jobspec.job_event").fetchone() == (None,)


def test_a_trace_that_is_too_long_is_not_kept(monkeypatch):
    monkeypatch.setattr(
        "opentelemetry.propagate.inject", lambda headers: headers.update(baggage="x" * 5000)
    )
    assert telemetry.carried() is None


def test_the_engine_works_without_opentelemetry():
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from jobspec_engine import telemetry\n"
        "assert not telemetry.INSTALLED and telemetry.carried() is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
