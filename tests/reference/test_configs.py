"""Every function config that the reference was given: refused where it refuses, at the place it
means, and accepted where it accepts, but for the classes of `differences.toml`.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path

import pytest

from jobspec import check
from jobspec.diagnostics import Severity
from jobspec.load import MappingNode, SequenceNode, load_text
from vectors import rows

# Which option each message of the reference is about, by how it begins or what it has in it.
PLACES = (
    ("A function name is required", "name"),
    ("A trigger must supply", "triggers"),
    ("A trigger cannot have both", "triggers"),
    ("An event trigger must specify", "triggers"),
    ("duplicate trigger", "triggers"),
    ("duplicate cron", "triggers"),
    ("isn't a valid cron schedule", "triggers"),
    ("event name is too long", "triggers"),
    ("invalid trigger expression", "triggers"),
    ("This function exceeds the max number of triggers", "triggers"),
    ("This function exceeds the max number of cancellation", "cancelOn"),
    ("Cancellation expression is invalid", "cancelOn"),
    ("function calls are disallowed", "cancelOn"),
    ("Priority.Run expression is invalid", "priority"),
    ("The debounce period", "debounce"),
    ("Debounce expression is invalid", "debounce"),
    ("There are more concurrency limits", "concurrency"),
    ("A concurrency key must be specified", "concurrency"),
    ("Invalid concurrency key", "concurrency"),
    ("ConcurrencyScope", "concurrency"),
    ("SingletonMode", "singleton"),
    ("limit must be greater than", "rateLimit"),
    ("period must be", "rateLimit"),
    ("failed to parse time duration", "rateLimit"),
    ("batch size cannot", "batchEvents"),
    ("batch timeout should", "batchEvents"),
    ("batch key expression", "batchEvents"),
    ("decode: time: invalid duration", "throttle"),
    ("Batching and debouncing", "debounce"),
    ("Batching and cancellation", "cancelOn"),
    ("Batching and singletons", "singleton"),
    ("A function cannot specify Priority.Run and Batch", "priority"),
)


def as_file(config):
    """A registration in the form of a spec file: one job, under the names files use."""
    job = {name: value for name, value in config.items() if name not in ("steps", "cancel")}
    job["triggers"] = [
        {{"expression": "if"}.get(name, name): value for name, value in trigger.items()}
        for trigger in config["triggers"]
    ]
    if "cancel" in config:
        job["cancelOn"] = config["cancel"]
    return json.dumps({"jobs": [job]})


@cache
def findings(text):
    """What is wrong with a spec, errors only, as pairs of a field and a code."""
    job = load_text(text, "<text>").node.get("jobs").items[0]
    return frozenset(
        (field_at(job, found.span), found.code)
        for found in check(text)
        if found.severity is Severity.ERROR
    )


def field_at(node, span):
    """The path of the innermost field at a place, such as `debounce.key`."""
    if isinstance(node, SequenceNode):
        inside = [item for item in node.items if covers(item.span, span)]
        return field_at(inside[0], span) if inside else ""
    if not isinstance(node, MappingNode):
        return ""
    for entry in node.entries:
        if covers(entry.key.span, span):
            return entry.name
        if covers(entry.value.span, span):
            return f"{entry.name}.{field_at(entry.value, span)}".rstrip(".")
    return ""


def covers(outer, inner):
    return outer.start <= inner.start < outer.end


def option_of(message, config):
    """The option that a message of the reference means; None where it continues the one before."""
    if message.startswith("ERROR: <input>"):
        return None
    if message.startswith("function: failed to parse time duration"):
        return "batchEvents"
    if message.startswith("key is invalid"):  # idempotency overwrites the rate limit
        return "idempotency" if "idempotency" in config else "rateLimit"
    return next(place for words, place in PLACES if words in message)


ROWS = rows("configs")
ACCEPTED = [row for row in ROWS if row["valid"]]
REFUSED = [row for row in ROWS if not row["valid"]]


def test_what_the_reference_refuses_is_refused_at_every_place_it_means():
    for row in REFUSED:
        options = {field.split(".")[0] for field, _ in findings(as_file(row["config"]))}
        meant = {option_of(message, row["config"]) for message in row["errors"]}
        assert meant - {None} <= options, (row["config"], row["errors"], options)


DIFFERENCES = tomllib.loads(
    (Path(__file__).parent / "differences.toml").read_text(encoding="utf-8")
)["configs"]


def is_difference(class_, config, field, code):
    """Whether a finding belongs to a class of deliberate differences."""
    applies = class_.get("beside") in (None, *config)
    return applies and field in class_["fields"] and code in class_["codes"]


def test_what_the_reference_accepts_is_accepted_but_for_listed_differences():
    for row in ACCEPTED:
        config = row["config"]
        for field, code in findings(as_file(config)):
            listed = [is_difference(one, config, field, code) for one in DIFFERENCES.values()]
            assert any(listed), (field, code, config)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_listed_difference_is_still_one_and_says_why(name):
    class_ = DIFFERENCES[name]
    assert len(class_["reason"].split()) > 10
    assert any(
        is_difference(class_, row["config"], field, code)
        for row in ACCEPTED
        for field, code in findings(as_file(row["config"]))
    )
