"""The JSON Schema of spec files: complete, and never stricter than a check."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from golden import agrees
from jobspec import check
from jobspec.diagnostics import Severity
from jobspec.load import load, read_sources
from jobspec.source import Source
from jobspec.spec.models import file_names
from jobspec.targets import schema
from jobspec.targets.descriptions import DESCRIPTIONS
from vectors import rows

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "docs" / "jobspec.schema.json"
SPECS = Draft7Validator(schema.schema())
GOOD = [
    *(ROOT / "examples").rglob("jobs.yaml"),
    *(ROOT / "engine").rglob("jobs.yaml"),
]

# Codes of the shape of a spec, which a schema sees, but for the faults of some examples: lengths of
# time out of range, an empty place, what several jobs have in common.
SHAPE = {f"JS30{number}" for number in range(1, 9)}
SHAPE |= {"JS311", "JS312", "JS314", "JS315", "JS316", "JS319", "JS401", "JS402", "JS170"}
UNSEEN = {
    "debounce-too-short",  # a length of time, which is a text to a schema
    "negative-timeout",
}


def plain(file):
    """What a file holds, None where it can't be read."""
    (source,) = read_sources([file])
    node = load(source).node if isinstance(source, Source) else None
    return None if node is None else node.plain()


def holds_jobs(file):
    spec = plain(file)
    return isinstance(spec, dict) and "jobs" in spec


BROKEN = [file for file in sorted((ROOT / "examples" / "broken").rglob("*.*")) if holds_jobs(file)]


def is_valid(spec):
    return SPECS.is_valid(spec)


def test_the_schema_is_one():
    Draft7Validator.check_schema(schema.schema())


def test_the_published_schema_is_the_one_that_is_printed():
    assert agrees(schema.render(), PUBLISHED)


@pytest.mark.parametrize("model", DESCRIPTIONS, ids=lambda model: model.__name__)
def test_every_field_is_described_and_nothing_else(model):
    assert list(DESCRIPTIONS[model]) == list(file_names(model))
    for text in DESCRIPTIONS[model].values():
        assert text[0].isupper() or text[0] == "`"
        assert text.endswith(".")


@pytest.mark.parametrize("file", GOOD, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_good_example_is_valid(file):
    assert is_valid(plain(file))


@pytest.mark.parametrize("file", BROKEN, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_broken_example_is_invalid_where_its_fault_is_of_shape(file):
    codes = {found.code for found in check(file)}
    of_shape = bool(codes & SHAPE) and file.stem not in UNSEEN
    assert is_valid(plain(file)) is not of_shape, codes


def job(**fields):
    return {"jobs": [{"id": "a", "triggers": [{"event": "a"}], **fields}]}


REFUSED = [
    [],
    {"job": []},
    {"jobs": {}},
    {"jobs": None},
    {"jobs": [{"id": "a"}]},
    {"events": {"a": {"shcema": {}}}},
    job(id=5),
    job(id=""),
    job(debonce={}),
    job(handler="send"),
    job(retries=21),
    job(retries=-1),
    job(retries="4"),
    job(retries=None),
    job(triggers=["a"] * 11),
    job(triggers=[{"event": "a" * 256}]),
    job(triggers=[{"event": "a", "cron": "* * * * *"}]),
    job(triggers=[{"event": "a", "cron": "* * * * *", "if": "true"}]),
    job(triggers=[{"event": "a", "jitter": "1s"}]),
    job(triggers=[{"event": "a", "missed": "skip"}]),
    job(triggers=[{"cron": "* * * * *", "missed": "twice"}]),
    job(triggers=[{"cron": "* * * * *", "if": "true"}]),
    job(triggers=[{}]),
    job(idempotency={"window": "24h"}),
    job(idempotency={"key": "event.data.a", "window": "always"}),
    job(debounce={"key": "event.data.a"}),
    job(debounce={"period": "banana"}),
    job(debounce={"period": 5}),
    job(rateLimit={"limit": 0, "period": "1m"}),
    job(throttle={"limit": 0, "period": "1m"}),
    job(throttle={"limit": 1, "period": "1m", "burst": -1}),
    job(concurrency=-1),
    job(concurrency=[{"limit": 1}] * 3),
    job(concurrency={"limit": 1, "scope": "env"}),
    job(concurrency={"limit": 1, "scope": "all", "key": "event.data.a"}),
    job(priority={}),
    job(batchEvents={"maxSize": 1, "timeout": "5s"}),
    job(batchEvents={"maxSize": 2, "timeout": "1d"}),
    job(batchEvents={"maxSize": 2, "timeout": "5s"}, debounce={"period": "1s"}),
    job(idempotency="event.data.a", rateLimit={"limit": 1, "period": "1s"}),
    job(singleton={"mode": "stop"}),
    job(cancelOn=[{"if": "true"}]),
    job(cancelOn=[{"event": "b", "match": "data.id"}] * 6),
    job(timeouts={"start": "soon"}),
    job(retry={"policy": "never"}),
    job(retry={"policy": "exponential", "delay": "1s", "factor": 0.5}),
    job(retry={"on": [{"error": "ValueError", "policy": "never"}]}),
    job(on_missing="fail"),
]
ACCEPTED = [
    {},
    {"events": {"a": None, "b": {}, "c": {"schema": {"type": "object"}}, "d": {"schema": "a:B"}}},
    job(),
    job(triggers=["a"] * 10),
    job(triggers=[{"event": "a" * 255}, {"cron": "* * * * *", "jitter": "30s", "missed": "all"}]),
    job(retries=0),
    job(retries=20),
    job(handler="app.jobs:Jobs.sénd"),
    job(idempotency="event.data.a"),
    job(idempotency={"key": "event.data.a", "window": "while-active"}),
    job(idempotency={"key": "event.data.a", "window": "24h"}),
    job(rateLimit={"limit": 1, "period": "1m"}),
    job(throttle={"limit": 1, "period": "1m", "burst": 0}),
    job(concurrency=0),
    job(concurrency=5),
    job(concurrency={"limit": 1, "scope": "fn"}),
    job(concurrency=[{"limit": 1}, {"limit": 2, "scope": "env", "key": "event.data.a"}]),
    job(batchEvents={"maxSize": 2, "timeout": "1h5s"}),
    job(cancelOn=[{"event": "b", "match": "data.id"}] * 5),
    job(timeouts={}),
    job(retry={"policy": "exponential", "delay": "1s", "factor": 1.5, "jitter": 0}),
    job(retry={"on": [{"error": "builtins:ValueError", "policy": "never"}]}),
]


def refused_for_its_shape(spec):
    return any(
        found.severity is Severity.ERROR and found.code in SHAPE
        for found in check(json.dumps(spec, ensure_ascii=False) + "\n")
    )


@pytest.mark.parametrize("spec", REFUSED, ids=lambda spec: json.dumps(spec)[:70])
def test_what_the_schema_refuses_a_check_refuses_too(spec):
    assert not is_valid(spec)
    assert refused_for_its_shape(spec)


@pytest.mark.parametrize("spec", ACCEPTED, ids=lambda spec: json.dumps(spec)[:70])
def test_what_a_check_accepts_the_schema_accepts_too(spec):
    assert is_valid(spec)
    assert not refused_for_its_shape(spec)


@pytest.mark.parametrize(("column", "units"), [("ns", schema.UNITS), ("go_ns", schema.GO_UNITS)])
def test_every_length_of_time_that_is_one_fits_the_pattern(column, units):
    pattern = re.compile(schema.duration(units)["pattern"])
    texts = [(row["text"], row[column]) for row in rows("durations")]
    assert all(pattern.search(text) for text, read in texts if read is not None)
    let_through = sum(read is None and bool(pattern.search(text)) for text, read in texts)
    assert let_through < len(texts) / 20  # those too long for 64 bits


def test_every_config_that_a_check_accepts_the_schema_accepts_too():
    for row in rows("configs"):
        config = {
            name: value
            for name, value in row["config"].items()
            if name not in ("steps", "cancel", "triggers")
        }
        spec = {"jobs": [config | {"triggers": ["a"]}]}
        if is_valid(spec):
            continue
        assert refused_for_its_shape(spec), spec
