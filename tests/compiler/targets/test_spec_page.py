"""The reference of spec files, `docs/spec.md`: below its introduction, what the code says."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from datetime import timedelta
from pathlib import Path

import pytest

from golden import agrees
from jobspec import backoff, check, jobs
from jobspec.diagnostics import Severity
from jobspec.durations import GO_UNITS, format_duration
from jobspec.phrases import joined
from jobspec.spec import models
from jobspec.spec.arguments import required
from jobspec.spec.models import file_names
from jobspec.targets import schema
from jobspec.targets.descriptions import CONDITION, DESCRIPTIONS, KEY
from jobspec.targets.unsupported import TARGETS

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "spec.md"
DIFFERENCES = ROOT / "tests" / "reference" / "differences.toml"

SECTIONS = {
    models.File: "The file",
    models.Event: "An event, under its name in `events`",
    models.Job: "A job, an item of `jobs`",
    models.Trigger: "A trigger, an item of `triggers`",
    models.Idempotency: "`idempotency`",
    models.Debounce: "`debounce`",
    models.RateLimit: "`rateLimit`",
    models.Throttle: "`throttle`",
    models.Concurrency: "`concurrency`",
    models.Priority: "`priority`",
    models.BatchEvents: "`batchEvents`",
    models.Singleton: "`singleton`",
    models.Cancellation: "An item of `cancelOn`",
    models.Timeouts: "`timeouts`",
    models.Retry: "`retry`",
    models.ErrorRetry: "An item of `retry.on`",
}

# The smallest that each mapping can be; a field is tried out beside what this has.
SMALLEST = {
    models.Idempotency: {"key": "event.data.a"},
    models.Debounce: {"period": "2m"},
    models.RateLimit: {"limit": 1, "period": "1h"},
    models.Throttle: {"limit": 1, "period": "1h"},
    models.Concurrency: {"limit": 1, "key": "event.data.a"},
    models.Priority: {"run": "event.data.a"},
    models.BatchEvents: {"maxSize": 2, "timeout": "5s"},
    models.Singleton: {"mode": "skip"},
    models.Cancellation: {"event": "app/deleted", "match": "data.id"},
    models.Timeouts: {"start": "2m"},
    models.Retry: {"policy": "exponential", "delay": "1s"},
    models.ErrorRetry: {"error": "builtins:ValueError", "policy": "exponential", "delay": "1s"},
}
# Values of fields whose type does not say what they may be.
VALUES = {
    "name": ["A"],
    "handler": ["app.jobs:run"],
    "event": ["app/created", "app/*"],
    "key": ["event.data.a"],
    "if": ["event.data.a == 'x'"],
    "cron": ["0 4 * * *"],
    "window": ["forever", "while-active", "24h", "1h"],
    "match": ["data.id"],
    "run": ["event.data.a"],
    "error": ["builtins:ValueError"],
    "on": [[{"error": "builtins:ValueError", "policy": "never"}]],
}
BESIDE = {"if": {"event": "a"}, "jitter": {"cron": "0 4 * * *"}, "missed": {"cron": "0 4 * * *"}}
OPTIONS = {title.strip("`"): model for model, title in SECTIONS.items() if title[0] == "`"}
OPTIONS["cancelOn"] = models.Cancellation
# What a text of these fields is, which a schema does not tell.
LANGUAGES = {
    "key": "a key",
    "if": "a condition",
    "run": "a CEL expression",
    "cron": "a schedule",
    "idempotency": "a key or [a mapping](#idempotency)",
}
DEFAULTS = {
    models.Job: (jobs.CompiledJob,),
    models.Trigger: (jobs.EventTrigger, jobs.CronTrigger),
    models.Retry: (backoff.Backoff,),
    models.ErrorRetry: (backoff.Backoff,),
}
OBJECTS = {json.dumps(schema._object(model)): text for model, text in SECTIONS.items()}


def test_the_page_says_what_the_code_does():
    introduction, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## ")
    parts = [introduction, *map(section, SECTIONS), differences()]
    assert agrees("\n".join(parts), PAGE)


def test_every_model_has_a_section():
    assert list(SECTIONS) == list(DESCRIPTIONS)


@pytest.mark.parametrize("model", list(SECTIONS)[2:], ids=lambda model: model.__name__)
def test_what_is_tried_out_for_targets_is_right_but_for_them(model):
    for name, described in schema._object(model)["properties"].items():
        for given in values(model, name, described):
            errors = [one for one in found(model, name, given) if one.severity is Severity.ERROR]
            assert {one.code for one in errors} <= {"JS318"}  # a policy that takes no delay


def test_the_readme_names_the_options_that_a_target_has_not():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    (engine,) = re.findall(r"It has no (.*?), and neither", readme)
    (inngest,) = re.findall(r"Inngest has no (.*?), and keeps", readme)
    refused = {target: refusals(target) for target in TARGETS}
    named = set(re.findall(r"`([^`]+)`", engine))
    assert named | {"triggers.if", "triggers.event: app/*"} == refused["engine"]
    named = set(re.findall(r"`([^`]+)`", inngest))
    windows = {"idempotency.window: while-active", "idempotency.window: 1h"}
    missed = {"triggers.missed: once", "triggers.missed: all"}
    assert named - {"missed"} | windows | missed == refused["inngest"]


def refusals(target):
    """Return what a target refuses: options of a job, and fields and values of those it has."""
    found_in_jobs = {
        name
        for name, described in schema._object(models.Job)["properties"].items()
        if honours(models.Job, name, described, target) == "no"
    }
    whole = {OPTIONS.get(name) for name in found_in_jobs} | {models.ErrorRetry}
    paths = {models.Job: "", models.Trigger: "triggers."}
    paths |= {one: f"{name}." for name, one in OPTIONS.items() if one not in whole}
    fields = {
        (f"{path}{name}", given, honours(model, name, described, target) == "no")
        for model, path in paths.items()
        for name, described in schema._object(model)["properties"].items()
        if name not in found_in_jobs
        for given in map(str, values(model, name, described))
        if "JS411" in {one.code for one in found(model, name, given, target)}
    }
    return found_in_jobs | {path if every else f"{path}: {given}" for path, given, every in fields}


def section(model):
    properties = schema._object(model)["properties"]
    lines = [f"## {SECTIONS[model]}", ""]
    if model not in (models.File, models.Event):
        lines += [f"In Python `spec.{model.__name__}`.", ""]
    lines += ["| field | in Python | value | without it | meaning | engine | Inngest |"]
    lines += ["|---|---|---|---|---|---|---|"]
    lines += [row(model, name, own, properties[name]) for name, own in file_names(model).items()]
    return "\n".join(lines) + "\n"


def row(model, name, own, described):
    cells = [
        f"`{name}`",
        f"`{own}`",
        LANGUAGES.get(name) or value(described),
        "must be there" if own in required(model) else default(model, own),
        DESCRIPTIONS[model][name].removeprefix(KEY).removeprefix(CONDITION),
        *(honours(model, name, described, target) for target in TARGETS),
    ]
    return f"| {' | '.join(cells)} |"


def value(described):
    """What can be written for a field, in words."""
    several = described.get("anyOf", [described])
    words = [kind(one) for one in several if one.get("type") != "null"]
    return joined(words, "or")


def kind(described):
    described = {key: one for key, one in described.items() if key != "description"}
    if "enum" in described:
        return joined([f"`{one}`" for one in described["enum"]], "or")
    match described["type"]:
        case "object":
            title = OBJECTS.get(json.dumps(described))
            values = described.get("additionalProperties")
            named = f"a mapping of names to {value(values)}" if values else "a mapping"
            return f"[a mapping](#{anchor(title)})" if title else named
        case "array":
            most = f", at most {described['maxItems']}" if "maxItems" in described else ""
            return f"a list ({value(described['items'])}{most})"
        case "string":
            return text(described)
        case number:
            word = "a whole number" if number == "integer" else "a number"
            return word + limits(described.get("minimum"), described.get("maximum"))


def text(described):
    if described.get("pattern") == schema._place()["pattern"]:
        return "`module:name`"
    lengths = (schema.duration()["pattern"], schema.duration(GO_UNITS)["pattern"])
    if described.get("pattern") in lengths:
        return "a length of time"
    most = f" of at most {described['maxLength']} characters" if "maxLength" in described else ""
    return f"a text{most}"


def limits(least, most):
    if most is not None:
        return f" from {least} to {most}"
    return "" if least is None else f", {least} or more"


def default(model, own):
    """What holds where a field is left out."""
    own = {"if_": "condition"}.get(own, own)
    compiled = DEFAULTS.get(model, (getattr(jobs, model.__name__, model),))
    fields = [field for one in compiled for field in dataclasses.fields(one) if field.name == own]
    given = fields[0].default if fields else None
    if given in (None, (), dataclasses.MISSING, timedelta(0)):
        return ""
    return f"`{format_duration(given) if isinstance(given, timedelta) else given}`"


def honours(model, name, described, target):
    """Tell whether a target can honour a field: `yes`, `no`, or `yes, but for` some values."""
    tried = values(model, name, described)
    refused = [
        one for one in tried if "JS411" in {each.code for each in found(model, name, one, target)}
    ]
    if not refused:
        return "yes"
    if len(refused) == len(tried):
        return "no"
    return f"yes, but for {joined([f'`{one}`' for one in refused], 'and')}"


def values(model, name, described):
    """Values to try a field out with; none for those that there is no job without."""
    if model in (models.File, models.Event) or name in ("id", "triggers"):
        return []
    if model is models.Job and name in OPTIONS:
        fields = SMALLEST[OPTIONS[name]]
        return [[fields] if name == "cancelOn" else fields]
    if "enum" in described:
        return described["enum"]
    if name in VALUES:
        return VALUES[name]
    if described["type"] == "string":
        return ["2m"]
    return [max(described.get("minimum", 0), 2)] if described["type"] == "integer" else [1]


def found(model, name, given, target=None):
    """What is found in a job that has one field of a mapping, and what that needs beside it."""
    fields = {**SMALLEST.get(model, BESIDE.get(name, {})), name: given}
    option = next((option for option, one in OPTIONS.items() if one is model), None)
    options = {
        models.Job: fields,
        models.Trigger: {"triggers": [fields]},
        models.Cancellation: {"cancelOn": [fields]},
        models.ErrorRetry: {"retry": {"on": [fields]}},
    }.get(model, {option: fields})
    job = {"id": "a", "triggers": ["app/created"], **options}
    return check(json.dumps({"jobs": [job]}), target=target)


def anchor(title):
    """The anchor that renderers of Markdown give a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def differences():
    """What the reference accepts and a check refuses, as the tests of both have it."""
    known = tomllib.loads(DIFFERENCES.read_text(encoding="utf-8"))["configs"]
    lines = ["## What the reference takes, and a check refuses", ""]
    for one in known.values():
        fields = joined([f"`{field}`" for field in one["fields"]], "and")
        lines.append(f"- {fields} ({', '.join(one['codes'])}): {one['reason']}")
    return "\n".join(lines) + "\n"
