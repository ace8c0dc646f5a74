"""Which fields an expression reads, for those who know what an event has."""

from __future__ import annotations

import pytest

from jobspec.cel import paths

READS = {
    "1 + 'a'": [],
    "event": ["event"],
    "event.data.a == async.data.b": ["event.data.a", "async.data.b"],
    "event.data['first name'].x": ["event.data.first name.x"],
    "(event.data).a": ["event.data.a"],
    "event.data.tags[0].x": ["event.data.tags"],
    "event.data[event.data.key]": ["event.data", "event.data.key"],
    "event.data.a.contains(event.data.b)": ["event.data.a", "event.data.b"],
    "size(event.data.a) + vars.b": ["event.data.a", "vars.b"],
    "event.data.tags.exists(t, t.x == event.data.y)": ["event.data.tags", "event.data.y"],
    "event.data.tags.exists(event, event.x == async.y)": ["event.data.tags", "async.y"],
    "[event.a, {event.b: event.c}] == (!event.d ? -event.e : 1)": [
        *("event.a", "event.b", "event.c", "event.d", "event.e"),
    ],
    "event.data['a\\x62']": ["event.data"],
    "event.data[r'a']": ["event.data"],
    "not an expression": [],
}


@pytest.mark.parametrize("text", READS)
def test_the_paths_of_an_expression_are_found_in_reading_order(text):
    found = [".".join((path.root, *(step.name for step in path.steps))) for path in paths(text)]
    assert found == READS[text]


def test_a_path_and_its_steps_know_where_they_are():
    text = "1 == event.data['plan'].name"
    (path,) = paths(text)
    assert text[slice(*path.span)] == "event.data['plan'].name"
    assert [text[slice(*step.span)] for step in path.steps] == ["data", "'plan'", "name"]
