"""Rules of the reference's parser and type checker, each with what it accepts and refuses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jobspec.cel import CelError, check_condition, check_expression, parse
from jobspec.cel.syntax import read
from jobspec.cel.tree import walk

VALUES = [
    *(
        "1",
        "2.5",
        ".5",
        "1e3",
        "1.5E-3",
        "0x1F",
        "7u",
        "0xAu",
        "-1",
        "-2.5",
        "000000000000000000001",
    ),
    *(
        "9223372036854775807",
        "-9223372036854775808",
        "-0x8000000000000000",
        "18446744073709551615u",
    ),
    *("''", '"a"', r"'\n'", r"'\377'", r"'\x41'", r"'\u00e9'", r"'\U0001F600'", r"'\?\`'"),
    *(r"r'\q'", r'R"\q"', "'''a'b'''", '"""a"b"""', r'r"""\"""', r"b'\xff'", r'B"\377"', r"br'\q'"),
    *("event", "async", "vars", ".event", "string", "int", "google.protobuf.Timestamp"),
    *("true", "false", "null", "[]", "{}"),
]
ACCEPTED = [
    "'''two\nlines''' == r\"\"\"two\nlines\"\"\"",
    "event.data.a // a comment\n == 1",
    "event\n.data\t.a\f==\r1",
    "[,] == [1,]",
    "{,} == {'a': 1,}",
    "[1, 'a', null] == []",
    "!!true && --1 == 1",
    "event.data.a ? 1 : event.data.b ? 2 : 3",
    "event.data.if.for.package == event.data.var",
    "1 + 'a' + [1] + null == {}",
    "1 < 'a' || null >= true",
    "1 - 2 * 3 / 4 % 5 == 6",
    "2u - 1u == 1u && 2.0 / 1.0 == 2.0",
    "now() - date('2026-01-01') > duration('1h')",
    "now() - duration('1h') < timestamp(0)",
    "null - now() == null",
    "string(null) == int(null)",
    "{'a': 1}.a == 1 && {'a': {'b': 1}}.a.b == 1",
    "[1, 2][0] == 1 && {'a': 1}['a'] == 1",
    "[][0] == 1 && {}['a'] == 1 && 'a' in {} && 1 in []",
    "5 in [1, 'a']",
    "event.data.tags.all(t, t == 'a') && event.data.tags.exists_one(t, t == 'a')",
    "event.data.tags.existsOne(t, t == 'a')",
    "event.data.tags.map(t, t + 'x') == event.data.tags.map(t, t != '', t).filter(t, t == 'a')",
    "[1, 2].exists(n, n % 2 == 0) && {'a': 1}.all(k, k.startsWith('a'))",
    "[[1]].all(inner, inner.exists(n, n in inner))",
    "event.data.tags.exists(event, event == 'a')",
    "has(event.data.a) && has((event.data.a)) && has({'a': 1}.a)",
    "size('a') + size([1]) + size({}) + size(b'a') == 'a'.size()",
    "'a'.matches('b') || matches('a', 'b')",
    "now().getHours() + now().getHours('UTC') + duration('1s').getSeconds() == 1",
    "b64decode('YQ==') == json_parse('{}').a",
    "type(1) == int && type(event) == map && type(type) == type",
    "dyn('a') - 1 == 0",
    "google.protobuf.StringValue{value: 'a'} == 'a'",
    "true ? now() : null",
    "event.data.a[0]['b'][event.data.c].d == 1",
]
REFUSED = [
    "1 == 2 ? 3 ? 4 : 5 : 6",
    "- !true",
    "!-1",
    "event.data.a === 1",
    "event.data.a <> 1",
    "0X1F",
    "1.",
    "1.u",
    "'a\nb'",
    "r'a\nb'",
    "'\\8'",
    "'\\a\\z'",
    "b'\\u0041'",
    "'''a\\q'''",
    "br'a",
    "0x8000000000000000",
    "-9223372036854775809",
    "1e400",
    "event.data.a ? b : 1",
    "f(1,)",
    "event()",
    "event.data()",
    "as == 1",
    "while(1)",
    "true.a",
    "'a' == 'b' && 1",
    "[1][1.0]",
    "{'a': 1}[1]",
    "1u + 1 - 1u * 1",
    "1u - 1",
    "now() + duration('1h') - 1 > null - 1",
    "now() * 2",
    "-true",
    "-1u",
    "!1",
    "1 ? 2 : 3",
    "true ? 1 : 1.0",
    "true ? [1] : ['a']",
    "1 in ['a']",
    "'a' in {1: 2}",
    "[1].all(n, n)",
    "[1].exists_one(n, n + 1 == 2 ? 1 : 2)",
    "[1].filter(n, 'a')",
    "[1].map(n, 'a', n)",
    "[1].all(n, m == 1)",
    "[1].all(n, true) && n == 1",
    "1.all(n, true)",
    "[1].all(n)",
    "[1].all(n, true, true)",
    "[1].all(1, true)",
    "has(event)",
    "has(event.data, 'a')",
    "event.data.a.has()",
    "lowercase(1)",
    "lowercase()",
    "lowercase('a', 'b')",
    "'a'.lowercase()",
    "contains('a', 'b')",
    "'a'.contains(1)",
    "double(true)",
    "double(null)",
    "uint(null)",
    "now('x')",
    "now().getHours(1)",
    "duration('1s').getMonth()",
    "string{}",
    "event{a: 1}",
    "nothing{a: 1}",
    "(event){a: 1}",
    "[?1]",
    "{?'a': 1}",
    "event.`a`",
    "event.data[?0]",
    "nothing.data.a",
    "json_parse('{}', 1)",
    "type(1) + 1 - type(2)",
]


@pytest.mark.parametrize("text", VALUES)
def test_a_value_that_the_reference_has_is_accepted(text):
    assert check_expression(text) == ()


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_the_reference_accepts_is_accepted(text):
    assert [found.message for found in check_expression(text)] == []


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_reference_refuses_is_refused(text):
    assert check_expression(text)


def test_every_fault_of_names_and_types_is_found_at_once():
    found = check_expression("a.x == 1 && b.y == 'x' - 1 && size(1, 2) == len(3)")
    assert [one.code for one in found] == ["JS143", "JS143", "JS146", "JS145", "JS144"]


def test_what_is_wrong_already_is_not_complained_of_again():
    assert len(check_expression("(nothing.a + 1)[0].all(n, n.b % 2 == 0) ? 1 : nothing")) == 2


def test_parsing_leaves_names_and_types_alone():
    tree = parse("nothing.a - 'x'")
    assert tree.span == (0, 15)


def test_a_refused_text_raises_a_value_error_with_its_diagnostics():
    with pytest.raises(CelError, match="is never closed") as caught:
        parse("(1")
    assert isinstance(caught.value, ValueError)
    assert [found.source.name for found in caught.value.diagnostics] == ["<expression>"]


def test_a_condition_may_be_anything_that_might_be_a_boolean():
    for text in ("event.data.a", "true", "event.data.a + 1", "[true][0]", "{'a': true}.a"):
        assert check_condition(text) == ()


def test_a_priority_may_be_anything_that_might_be_a_number():
    for text in ("event.data.a", "1", "2u", "1.5", "event.data.a || event.data.b"):
        assert check_condition(text, "number") == ()
    assert check_condition("true ? (event.data.a && event.data.b) : false", "number") == ()


def test_a_faulty_condition_is_not_told_about_its_result_too():
    assert [found.code for found in check_condition("'a' - 1")] == ["JS146"]
    assert [found.code for found in check_condition("'a")] == ["JS141"]


def test_the_grammar_is_built_on_the_first_text_and_only_once():
    script = """
import jobspec.cel
from jobspec.cel import syntax
assert syntax._parser.cache_info().misses == 0
jobspec.cel.check_expression("1")
jobspec.cel.check_expression("(")
assert syntax._parser.cache_info().misses == 1
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_tree_knows_where_its_parts_are():
    text = "size(event.data.tags) > 1 ? [event.data['a b'], {'k': -1}] : (event.a)"
    tree = read(text)
    parts = {text[node.span.start : node.span.end] for node in walk(tree)}
    expected = {text, "size(event.data.tags) > 1", "size(event.data.tags)", "event.data.tags"}
    expected |= {"event.data['a b']", "'a b'", "{'k': -1}", "'k': -1", "-1", "(event.a)", "event"}
    assert expected <= parts
