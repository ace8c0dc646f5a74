"""The reference refuses what nests deeper than 250, counted in its own two ways."""

from __future__ import annotations

import pytest

from jobspec.cel import CelError, check_expression, parse

# What builds an expression of a size, and the largest that the reference takes.
SHAPES = {
    "parentheses": (lambda n: "(" * n + "1" + ")" * n, 249),
    "lists": (lambda n: "[" * n + "]" * n, 250),
    "a sum": (lambda n: "1" + " + 1" * n, 250),
    "a sum of fields": (lambda n: "event.data.a" + " + event.data.a" * n, 248),
    "a product in each right operand": (lambda n: "1 + (1 * (" * n + "1" + "))" * n, 62),
    "comparisons": (lambda n: "1" + " == 1" * n, 250),
    "fields": (lambda n: "event" + ".a" * n, 250),
    "indexes": (lambda n: "event" + "['a']" * n, 250),
    "ternaries": (lambda n: "true ? 1 : " * n + "1", 249),
    "methods": (lambda n: "event.a" + ".size()" * n, 249),
    "calls": (lambda n: "dyn(" * n + "1" + ")" * n, 249),
}
FREE = {
    "conjunctions": lambda n: "true" + " && true" * n,
    "alternatives": lambda n: "true" + " || true" * n,
    "negations": lambda n: "!" * n + "true",
    "items": lambda n: "[1" + ", 1" * n + "]",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_limit_is_where_the_reference_has_it(shape):
    build, most = SHAPES[shape]
    parse(build(most))
    with pytest.raises(CelError) as refused:
        parse(build(most + 1))
    assert [found.code for found in refused.value.diagnostics] == ["JS148"]


@pytest.mark.parametrize("shape", FREE)
def test_what_the_reference_does_not_count_may_be_long(shape):
    assert check_expression(FREE[shape](5000)) == ()


def test_the_finding_is_at_the_innermost_part_that_is_too_deep():
    text = "(" * 250 + "1" + ")" * 250
    (found,) = check_expression(text)
    assert text[found.span.start : found.span.end] == "1"


def test_an_expression_longer_than_the_reference_reads_is_refused_unread():
    assert check_expression("'" + "a" * 99_998 + "'") == ()
    (found,) = check_expression("'" + "a" * 99_999 + "'")
    assert (found.code, found.span) == ("JS148", (100_000, 100_001))
