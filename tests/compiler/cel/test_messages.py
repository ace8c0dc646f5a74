"""What a person reads about each kind of fault, in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden import agrees
from jobspec.cel import check_condition, check_expression
from jobspec.diagnostics import Severity

GOLDEN = Path(__file__).parent / "golden"

FAULTS = {
    "nothing-at-all": [
        "",
        "  // only a comment",
    ],
    "no-value": [
        "event.data.a +",
        "+ event.data.a",
        "event.data.a ++ event.data.b",
        "event.data.a == == 1",
        "size(, event.data.a)",
        "event.data.a && !-event.data.b",
        "`event.data.a`",
        "event{.a: 1}",
    ],
    "no-field": [
        "event.data.",
        "event..data",
        "event.data.in",
        "event.data.true == 1",
        "event.data.'first name'",
        "event.data.?plan",
        "event.data[?'plan']",
        "event.data.`first-name`",
    ],
    "no-operator": [
        "event.data.a b",
        "event.data.a 'x'",
        "event.data.1",
        "event.data.a and event.data.b",
        "event.data.a == 1 or event.data.b == 2",
        "event.data.name is 'x'",
        "not event.data.a",
        "size(event.data.a event.data.b)",
        "event.data.a == 1, event.data.b == 2",
        "size(event.data.a){}",
    ],
    "brackets": [
        "(event.data.a == 1",
        "size(event.data.a",
        "event.data.tags[0",
        "['a', 'b'",
        "event.data.a == 1)",
        "(event.data.a]",
        "{{ event.data.a }}",
        "{'a' 1}",
        "{'a': 1",
        "event.data.a in ['x' 'y']",
    ],
    "ternaries": [
        "event?.data.a",
        "event.data.a ? 1",
        "event.data.a ? event.data.b ? 1 : 2 : 3",
        "event.data.a ? 1 : 'x'",
        "'x' ? 1 : 2",
    ],
    "characters": [
        "event.data.a = 1",
        "event.data.a === 1",
        "event.data.a & event.data.b",
        "event.data.a | event.data.b",
        "event.data.a == 1;",
        "${event.data.a}",
        "$.data.a",
        "# every event",
        "event.data.a\\n",
        "event.data.a == \u201cpro\u201d",
        "event.data.größe == 1",
        "event\u00a0.data.a",
        "event.data.a\u200b == 1",
        "event.data.a @ 1",
        "event.data.a == `pro`",
    ],
    "texts": [
        "event.data.plan == 'pro",
        'event.data.plan == "pro',
        "event.data.plan == 'pro\"",
        "event.data.plan == 'pro\n' + event.data.a",
        "event.data.plan == '''pro",
        "event.data.plan == r'pro",
        "'\\q'",
        "event.data.file.matches('\\d+')",
        "'\\x4'",
        "'\\u12'",
        "'\\U0001F60'",
        "'\\400'",
        "'\\ud800'",
        "'\\U00110000'",
        "b'\\u00e9'",
        "'ends with a backslash\\",
    ],
    "numbers": [
        "event.data.n == 9223372036854775808",
        "event.data.n == 18446744073709551616u",
        "event.data.n == 1e999",
        "event.data.n == 1_000",
    ],
    "names": [
        "evnt.data.a == 1",
        "data.a == 1",
        "event.data.first-name == 'x'",
        "steps.a.output == 1",
        "event.data.a == undefined",
        "event.data.a == True",
        "size == 1",
        "if.data.a == 1",
        "event.data.tags.exists(tag, tga == 'x')",
        "user{name: 'x'}",
        "event{name: 'x'}",
    ],
    "functions": [
        "upper(event.data.a) == 'X'",
        "event.data.a.toLowerCase() == 'x'",
        "event.data.a.startWith('x')",
        "len(event.data.a) == 1",
        "startsWith(event.data.a, 'x')",
        "event.data.a.uppercase() == 'X'",
        "size() == 0",
        "size(event.data.a, 1) == 0",
        "now(1) == now()",
        "event.data.a.startsWith()",
        "has(event.data.a, 'b')",
        "event.data.has('a')",
        ".has(event.data.a)",
        "all(event.data.tags, true)",
        "event.data.tags.exists(tag)",
        "event.data.tags.map(tag) == []",
    ],
    "types": [
        "event.data.a || 'x'",
        "'a' - 'b' == 'c'",
        "size(event.data.a) * 1.5 > 3.0",
        "event.data.a % 2.0 == 0",
        "2.0 % 2.0 == 0",
        "-'a' == 'b'",
        "!'a'",
        "5 in ['pro', 'free']",
        "5 in {'pro': 1}",
        "'a' in 'abc'",
        "'abc'[0] == 'a'",
        "['a']['b'] == 'a'",
        "'abc'.length == 3",
        "size(5) == 1",
        "size(event.data.a).startsWith('x')",
        "event.data.a.startsWith(5)",
        "'abc'.all(c, c == 'a')",
        "event.data.tags.filter(tag, 'x') == []",
        "double(null) == 1.0",
    ],
    "macros": [
        "has(event)",
        "has(event.data['plan'])",
        "event.data.tags.exists('x', true)",
        "event.data.tags.all(event.data.tag, true)",
        "event.data.tags.map(__result__, 1) == []",
    ],
    "several-at-once": [
        "evnt.data.a == 1 && upper(event.data.b) == size()",
        "'\\ud800' + if.a + has(event)",
    ],
}


@pytest.mark.parametrize("topic", FAULTS)
def test_a_fault_is_told_as_expected(topic):
    told = [tell(text, check_expression(text)) for text in FAULTS[topic]]
    assert agrees("\n\n".join(told) + "\n", GOLDEN / f"{topic}.txt")


def test_a_result_of_the_wrong_kind_is_told_as_expected():
    conditions = ["event.name + '!' == 'a!' ? 'x' : 'y'", "size(event.data.a)", "['x']", "now()"]
    told = [tell(text, check_condition(text)) for text in conditions]
    priorities = ["event.data.plan == 'pro'", "string(event.data.plan)", "null"]
    told += [tell(text, check_condition(text, "number")) for text in priorities]
    assert agrees("\n\n".join(told) + "\n", GOLDEN / "results.txt")


def test_the_table_is_long_enough():
    assert sum(map(len, FAULTS.values())) >= 100


@pytest.mark.parametrize("text", [text for topic in FAULTS.values() for text in topic])
def test_a_message_is_one_plain_line(text):
    for found in check_expression(text):
        said = found.message + (found.help or "")
        assert "\n" not in said
        assert found.message[0] == "`" or not found.message[0].isupper()
        assert not any(word in said for word in ("IDENT", "LPAR", "COLON", "$END", "Token", "None"))


def tell(text, diagnostics):
    """The finding as `jobspec check` shows it: the line, a caret, the message, the help."""
    assert diagnostics, f"nothing is found in {text!r}"
    blocks = [block(found) for found in diagnostics]
    return "\n".join(blocks)


def block(found):
    line, column = found.source.position(found.span.start)
    shown = found.source.line(line)
    width = max(1, min(found.span.end - found.span.start, len(shown) - column + 1))
    severity = "" if found.severity is Severity.ERROR else f"{found.severity.value} "
    lines = [shown, " " * (column - 1) + "^" * width, f"{severity}{found.code} {found.message}"]
    if found.help:
        lines.append(f"help: {found.help}")
    lines += [f"{one.message}: column {one.span.start + 1}" for one in found.related]
    return "\n".join(lines)
