"""Any text gives diagnostics inside it, or none: never another exception, never an endless loop."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobspec.cel import calls, check_condition, check_expression, paths

PIECES = [
    *(
        "event",
        "async",
        ".data",
        ".a",
        "x",
        "has",
        "size",
        "exists",
        ".exists(",
        "map",
        "in",
        "true",
    ),
    *(
        "null",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "?",
        "+",
        "-",
        "*",
        "/",
        "%",
        "!",
        "&&",
        "||",
    ),
    *("==", "<=", "<", "=", ".", "..", "1", "2.5", ".5", "7u", "0x1F", "1e9", "9" * 30, "'", '"'),
    *("'a'", '"b"', "'''", '"""', "r'", "b'", "\\", "\\q", "\\u12", "\\ud800", "//", "/*", "`a`"),
    *(
        " ",
        "\n",
        "\t",
        "\r",
        "\f",
        "\u00a0",
        "é",
        "\U0001f600",
        "\ud800",
        "\0",
        "if",
        "$",
        "#",
        "@",
    ),
]
TEXTS = st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@given(TEXTS)
@settings(max_examples=3000, deadline=None)
def test_any_text_gives_diagnostics_inside_it(text):
    diagnostics = check_condition(text)
    for found in diagnostics:
        assert 0 <= found.span.start <= found.span.end <= len(text)
        assert found.source.text == text
        assert found.message
        assert "\n" not in found.message
    assert list(diagnostics) == sorted(diagnostics, key=lambda found: found.span)
    refused = bool(check_expression(text))
    assert refused or diagnostics == () or [found.code for found in diagnostics] == ["JS149"]
    paths(text)
    calls(text)


DEEP = 10_000
LONG = {
    "open parentheses": "(" * DEEP,
    "parentheses": "(" * DEEP + "1" + ")" * DEEP,
    "lists": "[" * DEEP + "]" * DEEP,
    "maps": "{1:" * DEEP + "1" + "}" * DEEP,
    "negations": "!" * DEEP + "true",
    "ternaries": "true ? 1 : " * (DEEP // 2) + "1",
    "conjunctions": " && ".join(["event.a"] * DEEP),
    "sums": " + ".join(["event.a"] * DEEP),
    "fields": "event" + ".a" * DEEP,
    "empty lists": "[" + "[]," * (DEEP * 3) + "]",
    "comparisons of lists": " == ".join(["[[]]"] * DEEP),
    "quotes": "'" * DEEP,
    "open strings": "'''a " * DEEP,
    "names": "a" * (DEEP * 9),
    "a megabyte": "event.data.a + " * 70_000,
    "a megabyte of spaces": " " * 1_000_000,
}


@pytest.mark.parametrize("shape", LONG)
def test_a_long_or_deep_text_neither_fails_nor_hangs(shape):
    for found in check_condition(LONG[shape]):
        assert found.span.end <= len(LONG[shape])
    paths(LONG[shape])
    calls(LONG[shape])


def test_types_that_double_at_every_step_do_not_hang():
    text = "true"
    for level in range(60):
        inner = f"v{level - 1}" if level else "1"
        text = text.replace("true", f"[{{{inner}: {inner}}}].all(v{level}, true)")
    assert check_expression(text) == ()
