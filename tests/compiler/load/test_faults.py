"""What is said about files that can't be read as they are, and where."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobspec.load import load_text, yaml_events
from jobspec.load.limits import MAX_ALIASED, MAX_DEPTH, MAX_SIZE

PART = settings(max_examples=settings.default.max_examples // 10)

# text, code, the text at the place (or its offset where the place is empty), message
YAML = [
    ("a: b: c", "JS156", ":", "a colon and a space start a second value on this line"),
    ("a\nb: 1", "JS156", ":", "a key can't stand here: the line above has a value already"),
    ("a: 1\n  b: 2", "JS156", ":", "a key can't stand here: the line above has a value already"),
    ("a: 'x", "JS156", "'", "this quote is never closed"),
    ('a: "x\nb: 1\n', "JS156", '"', "this quote is never closed"),
    ("a: 'x\n---\n'", "JS156", "'", "this quote is never closed"),
    ("a:\n  b: 1\n c: 2", "JS156", "c", "this line is not indented like the ones around it"),
    ("- a\nb: 1", "JS156", "b", "this line is not indented like the ones around it"),
    ("a: 'it's'", "JS156", "s", "this stands behind the end of a value"),
    ('a: "x" y', "JS156", "y", "this stands behind the end of a value"),
    ("a: [1]]", "JS156", "]", "this stands behind the end of a value"),
    ("a: [b, c", "JS156", "[", "this list is not closed properly"),
    ("a: [b, c}", "JS156", "[", "this list is not closed properly"),
    ("a: {b: 1", "JS156", "{", "this mapping is not closed properly"),
    ("a: 1\nbc\nd: 2", "JS156", "b", "a key begins here, and its `:` is missing"),
    ("a: - b", "JS156", "-", "a list can't start on the line of its key"),
    ("a: ? b", "JS156", "?", "a `?` and a space start a complex key"),
    ("a: @x", "JS156", "@", "a text can't start with `@`"),
    ("a: `x`", "JS156", "`", "a text can't start with ```"),
    ("a: %x", "JS156", "%", "a text can't start with `%`"),
    ("a: }", "JS156", "}", "a value is missing here"),
    ('a: "\\q"', "JS156", None, "double-quoted texts have no such escape"),
    ('a: "\\x4"', "JS156", None, "this escape has too few hexadecimal digits"),
    ('a: "\\UFFFFFFFF"', "JS156", None, "this escape names no character"),
    ("a: |0\n x", "JS156", None, "the indentation of a block text is 1 to 9"),
    ("a: |x\n x", "JS156", None, "the text of a block starts on the next line"),
    ("a: &: x", "JS156", None, "a text can't start with `&`"),
    ("a: *: x", "JS156", None, "a text can't start with `*`"),
    ("a: !<x y", "JS156", None, "a text can't start with `!`"),
    ("a: !x!y z", "JS162", None, "this tag is not declared"),
    ("---\na\n... x", "JS156", "x", "this stands behind the end of the document"),
    ("%YAML 1.1\n---\na: on", "JS156", None, "this file asks for YAML 1.1, and specs are YAML 1.2"),
    ("%YAML 3.0\n---\na", "JS156", None, "this file asks for another version of YAML"),
    ("a:\n\tb: 1", "JS157", 3, "a tab indents this line"),
    ("a: 1\n\tb: 2", "JS157", 5, "a tab indents this line"),
    ("a: 1\na: 2", "JS159", "a", "`a` is set twice in one mapping"),
    ("1: x", "JS160", "1", "a key has to be a text, and this is a number"),
    ("true: x", "JS160", "true", "a key has to be a text, and this is a boolean"),
    ("~: x", "JS160", "~", "a key has to be a text, and this is empty"),
    ("[a]: x", "JS160", "[a]", "a key has to be a text, and this is a list"),
    ("? {a: b}\n: x", "JS160", "{a: b}", "a key has to be a text, and this is a mapping"),
    ("a: &x {b: 1}\nc:\n  <<: *x", "JS161", "<<", "merge keys are not part of YAML 1.2"),
    ("a: !env HOME", "JS162", "!env", "the tag `!env` does not fit here"),
    ("a: &x !foo\n  b", "JS162", "&x !foo", "the tag `!foo` does not fit here"),
    (
        "a: !!python/object:os.system x",
        "JS162",
        "!!python/object:os.system",
        "the tag `!!python/object:os.system` does not fit here",
    ),
    ("a: !!set {b}", "JS162", "!!set", "the tag `!!set` does not fit here"),
    ("a: !!map [b]", "JS162", "!!map", "the tag `!!map` does not fit here"),
    ("a: !!int x", "JS162", "!!int", "the tag `!!int` does not fit here"),
    ("a: 1\n---\nb: 2", "JS163", "---", "a second document starts here"),
    ("a: *x", "JS164", "*x", "there is no anchor `&x` above this"),
    ("a: &x [*x]", "JS164", "*x", "`*x` repeats the value that it is part of"),
    ("a: \x07", "JS165", "\x07", "the control character U+0007 can't stand in a file"),
    ("a: \ud800", "JS165", "\ud800", "U+D800 is half of a surrogate pair"),
    (
        "a: '\u2028'",
        "JS165",
        "\u2028",
        "U+2028 ends a line for some readers of YAML and not for others",
    ),
    ("a: " + "9" * 500, "JS166", "9" * 500, "this number has 500 digits"),
    ("a: 1e999", "JS166", "1e999", "this number is larger than a float can hold"),
    ("", "JS155", 0, "this file is empty"),
    ("# only a comment\n", "JS155", 0, "this file is empty"),
]

JSON = [
    ('{"a": 1,}', "JS158", ",", "a comma with nothing behind it"),
    ("[1, 2,\n]", "JS158", ",", "a comma with nothing behind it"),
    ('{"a": 1} // why', "JS158", "//", "this stands behind the end of the value"),
    ('{"a": 1, // why\n"b": 2}', "JS158", "/", "JSON has no comments"),
    ("[/* why */ 1]", "JS158", "/", "JSON has no comments"),
    ("[1 # why\n]", "JS158", "#", "JSON has no comments"),
    ("{'a': 1}", "JS158", "'", "a key is a text in double quotes"),
    ("{a: 1}", "JS158", "a", "a key is a text in double quotes"),
    ("['a']", "JS158", "'", "JSON has no single quotes"),
    ("[a]", "JS158", "a", "`a` is not a JSON value"),
    ("[NaN]", "JS158", "NaN", "`NaN` is not a JSON value"),
    ("[True]", "JS158", "True", "`True` is not a JSON value"),
    ("[01]", "JS158", "01", "`01` is not a JSON value"),
    ("[.5]", "JS158", ".5", "`.5` is not a JSON value"),
    ("[1.]", "JS158", "1.", "`1.` is not a JSON value"),
    ("[+1]", "JS158", "+1", "`+1` is not a JSON value"),
    ("[1 2]", "JS158", "2", "a `,` or a `]` is missing in front of this"),
    ('{"a": 1 "b": 2}', "JS158", '"', "a `,` or a `}` is missing in front of this"),
    ('{"a" 1}', "JS158", "1", "a `:` is missing in front of this"),
    ("[1", "JS158", "[", "the bracket is never closed by `]`"),
    ('{"a": 1', "JS158", "{", "the bracket is never closed by `}`"),
    ("[1}", "JS158", "}", "a `,` or a `]` is missing in front of this"),
    ("[,1]", "JS158", ",", "a value is missing here"),
    ('{"a":', "JS158", 5, "a value is missing here"),
    ('["a', "JS158", '"', "this quote is never closed"),
    ('["a\nb"]', "JS158", '"', "this quote is never closed"),
    ('["a\tb"]', "JS158", "\t", "the control character U+0009 can't stand in a text"),
    ('["\\q"]', "JS158", "\\q", "JSON has no such escape"),
    ('["\\u12"]', "JS158", "\\u", "JSON has no such escape"),
    ('{"a": 1, "a": 2}', "JS159", '"a"', "`a` is set twice in one object"),
    ('["\\ud800"]', "JS165", '"\\ud800"', "an escape in this text is half of a surrogate pair"),
    ('["\ud800"]', "JS165", "\ud800", "U+D800 is half of a surrogate pair"),
    ("[1e999]", "JS166", "1e999", "this number is larger than a float can hold"),
    ("", "JS155", 0, "this file is empty"),
    ("[1] 2", "JS158", "2", "this stands behind the end of the value"),
]


def assert_fault(text, name, code, place, message):
    loaded = load_text(text, name)
    found = loaded.diagnostics[0]
    assert (found.code, found.message) == (code, message)
    assert len(loaded.diagnostics) == 1
    assert found.help
    if isinstance(place, str):
        assert text[slice(*found.span)] == place
    elif place is not None:
        assert found.span == (place, place)


@pytest.mark.parametrize(("text", "code", "place", "message"), YAML)
def test_a_fault_of_a_yaml_file_is_told_at_its_place(text, code, place, message):
    assert_fault(text, "jobs.yaml", code, place, message)


@pytest.mark.parametrize(("text", "code", "place", "message"), JSON)
def test_a_fault_of_a_json_file_is_told_at_its_place(text, code, place, message):
    assert_fault(text, "jobs.json", code, place, message)


@pytest.mark.parametrize(("text", "code", "place", "message"), YAML)
def test_the_same_is_told_without_libyaml(monkeypatch, text, code, place, message):
    monkeypatch.setattr(yaml_events, "parser_of", yaml_events.PythonParser)
    if place is None or code == "JS156":  # its places differ by a character or two
        assert load_text(text, "jobs.yaml").diagnostics[0].message == message
    else:
        assert_fault(text, "jobs.yaml", code, place, message)


def test_a_duplicate_key_shows_both_places_and_the_first_counts():
    text = "jobs:\n  a: 1\n  b: 2\n  a: 3\n"
    loaded = load_text(text, "jobs.yaml")
    (found,) = loaded.diagnostics
    (first,) = found.related
    assert (found.source.position(found.span.start), first.source.position(first.span.start)) == (
        (4, 3),
        (2, 3),
    )
    assert loaded.node.plain() == {"jobs": {"a": 1, "b": 2}}


def test_faults_that_hide_nothing_are_all_told_at_once():
    text = "a: 1\na: !x 2\n3: 4\n<<: {}\n---\nb: 1\n"
    codes = [found.code for found in load_text(text, "jobs.yaml").diagnostics]
    assert codes == ["JS162", "JS159", "JS160", "JS161", "JS163"]


@pytest.mark.parametrize(
    ("text", "name", "code"),
    [
        ("[" * 100_000, "a.yaml", "JS153"),
        ("{a: " * 100_000, "a.yaml", "JS153"),
        ("- " * 100_000, "a.yaml", "JS153"),
        ("".join(" " * depth + "a:\n" for depth in range(2_000)), "a.yaml", "JS153"),
        ("[" * 100_000, "a.json", "JS153"),
        ('{"a":' * 100_000, "a.json", "JS153"),
        ("#" * (MAX_SIZE + 1), "a.yaml", "JS152"),
    ],
)
def test_a_file_beyond_a_limit_costs_bounded_time(text, name, code):
    started = time.process_time()
    loaded = load_text(text, name)
    assert [found.code for found in loaded.diagnostics] == [code]
    assert loaded.node is None
    assert time.process_time() - started < 10


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_a_file_may_hold_so_many_values_and_no_more(monkeypatch, name):
    for reader in ("yaml_reader", "json_reader"):
        monkeypatch.setattr(f"jobspec.load.{reader}.MAX_NODES", 100)
    assert load_text(f"[{', '.join('1' * 99)}]", name).diagnostics == ()
    (found,) = load_text(f"[{', '.join('1' * 100)}]", name).diagnostics
    assert (found.code, found.message) == ("JS152", "this file holds more than 500,000 values")


def test_values_may_nest_up_to_the_limit_and_no_deeper():
    def nested(depth):
        return "[" * depth + "]" * depth

    for name in ("a.yaml", "a.json"):
        assert load_text(nested(MAX_DEPTH), name).diagnostics == ()
        assert load_text(nested(MAX_DEPTH + 1), name).diagnostics[0].code == "JS153"


def test_values_that_nest_too_deep_are_found_at_the_same_place_in_both_kinds_of_files():
    for text in ("[" * (MAX_DEPTH + 1), "[" * 100_000):
        for name in ("a.yaml", "a.json"):
            (found,) = load_text(text, name).diagnostics
            assert (found.code, found.span.start) == ("JS153", MAX_DEPTH), (name, len(text))


def test_the_depth_of_an_alias_counts_where_it_stands():
    deep = "[" * 60 + "]" * 60
    text = f"a: &x {deep}\nb: {'[' * 60}*x{']' * 60}\n"
    assert load_text(text, "a.yaml").diagnostics[0].code == "JS153"


def test_a_bomb_of_aliases_is_defused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    (found,) = load_text("\n".join(lines), "a.yaml").diagnostics
    assert (found.code, found.message) == (
        "JS154",
        f"aliases of this file repeat more than {MAX_ALIASED:,} values",
    )


def test_nothing_is_ever_constructed():
    text = "a: !!python/object/apply:os.abort []\n"
    loaded = load_text(text, "a.yaml")
    assert loaded.node.plain() == {"a": []}
    assert loaded.diagnostics[0].code == "JS162"


GOOD = """\
events:
  github/push:
    schema: myapp.events:Push # why
jobs:
  - id: "system.\\x63ode"
    triggers: [{event: github/push}, {cron: '0 3 * * *'}]
    debounce: &d
      key: >-
        event.data.a + '/'
        + event.data.b
      period: 2m
    other: *d
"""
EDITS = st.lists(
    st.tuples(
        st.integers(0, len(GOOD)),
        st.integers(0, 3),
        st.text(max_size=3)
        | st.sampled_from([*list("\t\n\r :-?,[]{}#&*!|>'\"%@`\\"), "\n  ", "<<: "]),
    ),
    max_size=6,
)


def edited(edits):
    text = GOOD
    for at, gone, new in edits:
        text = text[:at] + new + text[at + gone :]
    return text


def assert_safe(text, name):
    loaded = load_text(text, name)
    assert (loaded.node is not None) or loaded.diagnostics
    for found in loaded.diagnostics:
        assert 0 <= found.span.start <= found.span.end <= len(loaded.source.text)
        assert len(found.message.splitlines()) == 1
    if loaded.node is not None:
        assert_inside(loaded.node, len(loaded.source.text))


def assert_inside(node, size):
    assert 0 <= node.span.start <= node.span.end <= size
    for child in getattr(node, "items", ()):
        assert_inside(child, size)
    for entry in getattr(node, "entries", ()):
        assert_inside(entry.key, size)
        assert_inside(entry.value, size)


@PART
@given(EDITS)
def test_any_edit_of_a_good_file_is_read_or_refused(edits):
    assert_safe(edited(edits), "a.yaml")


@PART
@given(EDITS)
def test_any_edit_is_read_or_refused_without_libyaml(edits):
    parser, yaml_events.parser_of = yaml_events.parser_of, yaml_events.PythonParser
    try:
        assert_safe(edited(edits), "a.yaml")
    finally:
        yaml_events.parser_of = parser


@PART
@given(st.text(), st.sampled_from(["a.yaml", "a.json"]))
@example("\ufeff\ufeffa", "a.yaml")
@example("\\", "a.json")
@example('"\\', "a.json")
@example("&a", "a.yaml")
@example("{? }", "a.yaml")
@example("- !<", "a.yaml")
def test_any_text_is_read_or_refused(text, name):
    assert_safe(text, name)


@PART
@given(st.text(st.sampled_from('{}[],:" \n\\u0dtrue1.e-/'), max_size=30))
def test_a_json_text_is_accepted_where_python_accepts_it(text):
    import json

    def refuse(value):
        raise ValueError(value)

    try:
        expected = json.loads(text, parse_constant=refuse)
    except ValueError:
        assert load_text(text, "a.json").diagnostics
        return
    loaded = load_text(text, "a.json")
    if not loaded.diagnostics:
        assert loaded.node.plain() == expected
    assert {found.code for found in loaded.diagnostics} <= {"JS159", "JS165", "JS166"}


def test_no_stack_is_used_up():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len_of_stack() + 3 * MAX_DEPTH + 50)
    try:
        for name in ("a.yaml", "a.json"):
            assert load_text("[" * MAX_DEPTH + "]" * MAX_DEPTH, name).diagnostics == ()
    finally:
        sys.setrecursionlimit(limit)


def len_of_stack():
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth
