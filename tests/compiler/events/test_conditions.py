"""The paths of conditions against the types of their events."""

from __future__ import annotations

import pytest

from jobspec import cel
from jobspec.events import Event, check_path, read_schema

SCHEMA = {
    "properties": {
        "plan": {"type": "string"},
        "user": {"properties": {"id": {"type": ["string", "null"]}}},
        "tags": {"type": "array"},
    }
}
EVENT = Event("user/created", read_schema(SCHEMA)[0])


def found(text, *events):
    faults = [fault for path in cel.paths(text) for fault in check_path(path, events)]
    return [(fault.code, text[slice(*fault.span)]) for fault in faults]


@pytest.mark.parametrize(
    "text",
    [
        "event.data.plan == 'pro'",
        "event.data.user.id == null",
        "has(event.data.user.id)",
        "event.data.user['id'] == 'x'",
        "event.data.tags.exists(tag, tag == 'x')",
        "event.data.tags[0].name == 'x'",
        "event.data.plan.startsWith('p')",
        "event.name == 'x' && event.id != '' && event.ts > 5",
        "event.user.anything && event.v == '1'",
        "event.data == event.data",
        "event == event",
    ],
)
def test_a_condition_over_fields_that_may_be_there_is_fine(text):
    assert found(text, EVENT) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("event.data.paln == 'pro'", [("JS203", "event.data.paln")]),
        ("has(event.data.paln)", [("JS203", "event.data.paln")]),
        ("event.data.user['name'] == 'x'", [("JS203", "event.data.user['name'")]),
        ("event.data.plan.name == 'x'", [("JS204", "event.data.plan.name")]),
        ("event.data.tags.size > 5", [("JS204", "event.data.tags.size")]),
        ("event.data.user.id.x == 'x'", [("JS204", "event.data.user.id.x")]),
    ],
)
def test_a_path_that_never_leads_anywhere_is_found(text, expected):
    assert found(text, EVENT) == expected
    assert found(text) == []


def test_a_part_that_no_event_has_is_found_without_a_schema():
    assert found("event.dta.plan == 'pro'") == [("JS215", "dta")]


def test_each_event_is_looked_at():
    other = Event("other", read_schema({"properties": {"x": {}}})[0])
    assert [code for code, _ in found("event.data.plan == 'x'", EVENT, other)] == ["JS203"]
