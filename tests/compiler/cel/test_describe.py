"""What a construct is called, and which one stands at a place."""

from __future__ import annotations

import pytest

from jobspec.cel import construct_at, describe, parse
from jobspec.cel.calls import forbidden_calls

NAMES = {
    "event": "a name",
    "event.data": "a field",
    "event['data']": "indexing",
    "a ? b : c": "a ternary",
    "(a)": "parentheses",
    "[a]": "a list",
    "{'a': b}": "a map",
    "a.b{c: 1}": "a message",
    "f(x)": "a function call",
    "a.f(x)": "a method call",
    "has(a.b)": "the macro `has`",
    "a.exists(x, x)": "the macro `exists`",
    "!a": "a negation",
    "-a": "a minus sign",
    "a + b": "an addition",
    "a - b": "a subtraction",
    "a * b": "a multiplication",
    "a / b": "a division",
    "a % b": "a remainder",
    "a && b": "a logical and",
    "a || b": "a logical or",
    "a in b": "a membership test",
    "a < b": "a comparison",
    "1": "a number",
    "'a'": "a string",
    "r'a'": "a raw string",
    "'''a'''": "a triple-quoted string",
    "b'a'": "a bytes literal",
    "true": "a boolean",
    "null": "null",
}


@pytest.mark.parametrize("text", NAMES)
def test_a_construct_has_a_name(text):
    assert describe(parse(text)) == NAMES[text]


@pytest.mark.parametrize(
    ("text", "at", "found"),
    [
        ("event.data.a + string(event.data.b)", "string", "string(event.data.b)"),
        ("event.data.a + string(event.data.b)", "data.b", "string(event.data.b)"),
        ("event.data.a + (event.data.b + 'x')", "(", "(event.data.b + 'x')"),
        ("'a' + event.data.a[0] + 'b'", "[", "event.data.a[0]"),
        ("event.data.a + 'x' == 'y'", "==", "event.data.a + 'x' == 'y'"),
        ("event.data.a + 1", "+", "event.data.a + 1"),
    ],
)
def test_the_construct_at_a_place_is_the_outermost_that_is_no_mere_addition(text, at, found):
    node = construct_at(parse(text), text.index(at))
    assert text[slice(*node.span)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("event.data.id == async.data.id", []),
        ("int(event.data.a) > double('1') && date(event.ts) < now_plus('1h')", []),
        ("duration('1h') == now_minus('1h') - now_plus('1h') || uint(1) > 2u", []),
        ("size(event.data.a) > 1", ["size"]),
        ("string(lowercase(event.data.a)) == 'a'", ["string", "lowercase"]),
        ("event.data.a in ['x']", ["in"]),
        ("has(event.data.a) || event.data.b.exists(x, size(x) == 1)", ["has", "exists"]),
        ("size(1).contains(size(2)) == [size(3)]", ["contains", "size"]),
        ("now() > event.ts", ["now"]),
    ],
)
def test_the_calls_that_a_cancellation_may_not_make_are_found(text, found):
    assert [name for name, _ in forbidden_calls(parse(text))] == found
