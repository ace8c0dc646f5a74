"""The JSON Schema of spec files, by which editors complete, explain and check them.

Made of the models of what a person may write; the limits here are compared with those that a check
enforces by a test. A schema sees less than a check: nothing of keys, conditions, times or other
files. What it refuses, a check refuses, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import timedelta
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from jobspec.durations import GO_UNITS, UNITS
from jobspec.spec import models
from jobspec.spec.fields import required_fields
from jobspec.spec.models import file_names
from jobspec.spec.options import MOST_CANCELLATIONS, MOST_CONCURRENCY_LIMITS
from jobspec.spec.reading import MOST_RETRIES
from jobspec.spec.retries import MOST_GROWTH
from jobspec.spec.rules import NOT_WITH_BATCHES
from jobspec.spec.triggers import LONGEST_EVENT_NAME, MOST_TRIGGERS
from jobspec.targets.descriptions import DESCRIPTIONS

Schema = dict[str, Any]

DRAFT = "http://json-schema.org/draft-07/schema#"  # the latest that editors know well

_NAMES = {"Callable": Callable, "Mapping": Mapping, "Sequence": Sequence}
_TYPES: dict[object, Schema] = {
    str: {"type": "string", "minLength": 1},
    int: {"type": "integer"},
    float: {"type": "number"},
}


def render() -> str:
    """Return the schema as JSON."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> Schema:
    """Return the schema of a spec file."""
    return {
        "$schema": DRAFT,
        "title": "Background jobs",
        "description": "A spec file of jobspec: events, and the jobs that they start.",
        **_object(models.File),
    }


def _object(model: type) -> Schema:
    """Return the schema of a mapping that has the fields of a model."""
    hints = get_type_hints(model, localns=_NAMES)
    fields = {name: _field(model, name, hints[own]) for name, own in file_names(model).items()}
    required = [name for name in fields if name in required_fields(model)]
    found: Schema = {"type": "object", "properties": fields, "additionalProperties": False}
    if required:
        found["required"] = required
    return found | _ACROSS_FIELDS.get(model, {})


def _field(model: type, name: str, hint: object) -> Schema:
    found = _value(hint)
    described: Schema = {"description": DESCRIPTIONS[model][name]}
    for facet, limit in _LIMITS.get(model, {}).get(name, {}).items():
        _limited(found, facet, limit)
    return described | found


def _limited(found: Schema, facet: str, limit: object) -> None:
    """Set a limit where a value has the type that it is for."""
    for one in (found, *found.get("anyOf", ())):
        if one.get("type") in _TYPES_OF_LIMITS[facet]:
            one[facet] = limit


def _value(hint: object) -> Schema:
    """Return the schema of a type, without what only Python can write: None, functions, dicts."""
    members = _members(hint)
    kinds = [one for one in members if one is not type(None) and not _is_python(one)]
    if timedelta in kinds:
        kinds = [one for one in kinds if one is not timedelta and one is not str]
        return _any_of([*map(_kind, kinds), duration()])
    if any(is_dataclass(one) for one in kinds):
        kinds = [one for one in kinds if get_origin(one) is not Mapping]
    return _any_of([_kind(one) for one in kinds])


def _members(hint: object) -> Sequence[object]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_python(hint: object) -> bool:
    return get_origin(hint) in (type, Callable)


def _any_of(found: Sequence[Schema]) -> Schema:
    """Return the schema of one of several.

    In an order of ours, since that of a union may change, and editors explain a value that fits
    none of them by the first.
    """
    if len(found) == 1:
        return found[0]
    return {"anyOf": sorted(found, key=lambda one: _ORDER.index(one.get("type", "enum")))}


def _kind(hint: Any) -> Schema:
    """Return the schema of a type that is no union."""
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        # `typing` keeps one union for literals that differ in their order: whichever came first.
        return {"enum": sorted(arguments)}
    if origin is Sequence:
        return {"type": "array", "items": _value(arguments[0])}
    if origin is Mapping:
        return {"type": "object"} | _values(arguments[1])
    return dict(_TYPES[hint])


def _values(hint: object) -> Schema:
    """Return the part of a schema about the values of a mapping, which may be nothing."""
    if hint is Any:
        return {}
    found = _value(hint)
    has_nothing = type(None) in _members(hint)
    return {"additionalProperties": _any_of([found, {"type": "null"}]) if has_nothing else found}


def duration(units: Sequence[str] = UNITS) -> Schema:
    """Return the schema of a length of time."""
    number = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
    return {
        "type": "string",
        "pattern": f"^[-+]?(0|({number}({'|'.join(units)}))+)$",
        "patternErrorMessage": "expected a length of time such as 90s, 2m or 1h30m",
    }


def _place() -> Schema:
    """Return the part of a schema about `module:name`."""
    return {"pattern": r"^[^\s:/-]+:[^\s:/-]+$", "patternErrorMessage": "expected module:name"}


def _never_beside(name: str, others: Sequence[str]) -> list[Schema]:
    return [
        {
            "not": {"required": [name, other]},
            "errorMessage": f"`{other}` can't go with `{name}`",
        }
        for other in others
    ]


_ORDER = ("object", "array", "string", "enum", "integer", "number", "null")
_TYPES_OF_LIMITS = {
    "minimum": ("integer", "number"),
    "maximum": ("integer", "number"),
    "maxItems": ("array",),
    "maxLength": ("string",),
    "pattern": ("string",),
    "patternErrorMessage": ("string",),
}


def _any_required(*names: str) -> Schema:
    return {"anyOf": [{"required": [name]} for name in names]}


_EXPECTED_WINDOW = "expected forever, while-active, or a length of time such as 24h"
_JITTER = {"minimum": 0, "maximum": 1}
_FACTOR = {"minimum": 1, "maximum": MOST_GROWTH}
_LIMITS: dict[type, dict[str, Schema]] = {
    models.Job: {
        "triggers": {"maxItems": MOST_TRIGGERS},
        "handler": _place(),
        "retries": {"minimum": 0, "maximum": MOST_RETRIES},
        "concurrency": {"minimum": 0, "maxItems": MOST_CONCURRENCY_LIMITS},
        "cancelOn": {"maxItems": MOST_CANCELLATIONS},
    },
    models.Idempotency: {"window": {"patternErrorMessage": _EXPECTED_WINDOW}},
    models.Trigger: {"event": {"maxLength": LONGEST_EVENT_NAME}},
    models.RateLimit: {"limit": {"minimum": 1}},
    models.Throttle: {"limit": {"minimum": 1}, "burst": {"minimum": 0}},
    models.Concurrency: {"limit": {"minimum": 0}},
    models.BatchEvents: {
        "maxSize": {"minimum": 2},
        "timeout": {"pattern": duration(GO_UNITS)["pattern"]},
    },
    models.Retry: {"factor": _FACTOR, "jitter": _JITTER},
    models.ErrorRetry: {"factor": _FACTOR, "jitter": _JITTER, "error": _place()},
}
_ACROSS_FIELDS: dict[type, Schema] = {
    models.Job: {
        "allOf": [
            *_never_beside("batchEvents", NOT_WITH_BATCHES),
            *_never_beside("idempotency", ("rateLimit",)),
        ]
    },
    models.Trigger: {
        "oneOf": [
            {"required": ["event"], "not": _any_required("cron", "jitter", "missed")},
            {"required": ["cron"], "not": _any_required("event", "if")},
        ]
    },
    models.Concurrency: {
        "if": {"required": ["scope"], "properties": {"scope": {"enum": ["env", "account"]}}},
        "then": {"required": ["key"]},
    },
}
