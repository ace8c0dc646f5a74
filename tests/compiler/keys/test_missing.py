"""Which fields of a key an event lacks."""

from __future__ import annotations

import pytest

from jobspec.keys import KeyTemplate

TEMPLATE = KeyTemplate.parse("event.data.a + '/' + event.data.b.c")


@pytest.mark.parametrize(
    ("data", "missing"),
    [
        ({"a": "x", "b": {"c": "y"}}, ()),
        ({"a": "", "b": {"c": False}}, ()),
        ({"a": 0, "b": {"c": []}}, ()),
        ({"a": None, "b": {"c": "y"}}, (("a",),)),
        ({"a": "x", "b": {"c": None}}, (("b", "c"),)),
        ({"a": "x", "b": {}}, (("b", "c"),)),
        ({"a": "x", "b": "c"}, (("b", "c"),)),
        ({}, (("a",), ("b", "c"))),
        ([], (("a",), ("b", "c"))),
    ],
)
def test_a_field_is_missing_where_nothing_or_null_is(data, missing):
    assert TEMPLATE.missing({"data": data}) == missing


def test_an_event_without_data_has_no_field():
    assert TEMPLATE.missing({}) == (("a",), ("b", "c"))


def test_each_path_is_looked_at_by_itself():
    template = KeyTemplate.parse("event.data.a + '/' + event.data.a.b")
    assert template.missing({"data": {"a": "x"}}) == (("a", "b"),)
