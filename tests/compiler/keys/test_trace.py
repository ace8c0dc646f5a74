"""An explanation of a key agrees with the key, and says what each term adds."""

from __future__ import annotations

import pytest

from jobspec.keys import EventError, KeyTemplate
from jobspec.keys.trace import trace
from vectors import rows

VALID = [row for row in rows("keys") if row["valid"]]


def traced(text, **data):
    return trace(KeyTemplate.parse(text), {"name": "a", "data": data})


def said(text, **data):
    """What each term adds, and how."""
    return [(term.rendered, term.how) for term in traced(text, **data).terms]


def test_an_explanation_ends_in_the_key_that_resolving_gives():
    for row in VALID:
        template = KeyTemplate.parse(row["expr"])
        explained = trace(template, row["event"])
        assert explained.key == explained.terms[-1].so_far == template.resolve(row["event"])


def test_what_the_terms_add_is_the_key_where_no_values_are_combined():
    compared = 0
    for row in VALID:
        explained = trace(KeyTemplate.parse(row["expr"]), row["event"])
        parts = [term.rendered for term in explained.terms]
        if None not in parts:
            compared += 1
            assert "".join(parts) == explained.key.text, row
    assert compared > 8_000


def test_values_are_combined_only_where_the_key_is_not_their_texts():
    for row in VALID:
        explained = trace(KeyTemplate.parse(row["expr"]), row["event"])
        if any(term.rendered is None for term in explained.terms):
            kinds = {term.type for term in explained.terms if term.rendered is None}
            assert len(kinds) == 1
            assert not kinds & {"text", "missing"}


@pytest.mark.parametrize(
    ("text", "data", "expected"),
    [
        ("event.data.a", {"a": "x"}, [("x", "as it is")]),
        (
            "event.data.a + 'x'",
            {"a": 1_000_000},
            [("1e+06", "a number, as the reference writes it"), ("x", "as it is written")],
        ),
        *(
            ("event.data.a", {"a": number}, [(text, how)])
            for rounded in ["a number so large that it was rounded: others give this text, too"]
            for number, text, how in [
                (2**53 - 1, "9.007199254740991e+15", "a number, as the reference writes it"),
                (2**53, "9.007199254740992e+15", rounded),
                (-(2**53) - 1, "-9.007199254740992e+15", rounded),
            ]
        ),
        (
            "event.data.a + event.data.b",
            {"a": 1, "b": 2},
            [(None, "a number added to the others beside it")] * 2,
        ),
        (
            "event.data.a + event.data.b",
            {"a": [1], "b": [2]},
            [(None, "an array joined to the others beside it")] * 2,
        ),
        (
            "event.data.a + event.data.b + 'x'",
            {"a": True, "b": True},
            [(None, "no two values of the type boolean can be added")] * 2
            + [("x", "as it is written")],
        ),
        (
            "event.data.a + event.data.b + event.data.c",
            {"a": True, "b": True, "c": True},
            [(None, "no two values of the type boolean can be added")] * 2
            + [("true", "a boolean, as the reference writes it")],
        ),
        (
            "'x' + event.data.a + event.data.b",
            {"a": [1], "b": {"c": 2}},
            [
                ("x", "as it is written"),
                ("[1]", "an array, as the reference writes it"),
                ("map[c:2]", "an object, as the reference writes it"),
            ],
        ),
        (
            "'x' + event.data.a",
            {"a": None},
            [("x", "as it is written"), ("NULL_VALUE", "null, as the reference writes it")],
        ),
        (
            "'x' + event.data.a",
            {},
            [("x", "as it is written"), ("", "missing, so it is skipped")],
        ),
        ("event.data.a", {}, [("false", "nothing is known so far, which makes `false`")]),
        (
            "event.data.a + event.data.b + event.data.c",
            {"c": True},
            [
                ("", "missing, so it is skipped"),
                ("false", "nothing is known so far, which makes `false`"),
                (None, "a boolean can't be added to `false`"),
            ],
        ),
        (
            r"'a\tb' + event.data.vars.x",
            {"vars": {"x": "y"}},
            [("a\tb", "with its escapes processed"), ("y", "as it is")],
        ),
    ],
)
def test_each_term_says_what_it_adds_and_how(text, data, expected):
    assert said(text, **data) == expected


def test_the_key_is_shown_as_it_grows():
    terms = traced("event.data.a + '/' + event.data.b", a="x", b=2).terms
    assert [term.so_far.text for term in terms] == ["x", "x/", "x/2"]


def test_each_term_is_shown_with_what_the_event_has_for_it():
    explained = traced("event.data.a + '/' + event.data.b", a=[1, None])
    template = KeyTemplate.parse("event.data.a + '/' + event.data.b")
    assert [(term.term, term.type, term.value) for term in explained.terms] == [
        (template.terms[0], "array", [1.0, None]),
        (template.terms[1], "text", "/"),
        (template.terms[2], "missing", None),
    ]


def test_a_value_that_is_not_json_raises_as_resolving_does():
    with pytest.raises(EventError):
        traced("event.data.a", a=object())
