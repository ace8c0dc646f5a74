"""A refused text is read to its end: each fault is told once, in its place."""

from __future__ import annotations

import pytest

from jobspec.keys import KeyTemplate
from jobspec.keys.fault import quoted
from jobspec.keys.reader import find_faults

INSIDE_DATA = "a key reads only `event.data`; send the value there, as a field of the data"
BELOW_DATA = "a key reads only `event.data`: write `event.data.` and the field's path"


def told(text):
    """The code of each fault, and the piece of the text that it points at."""
    return [(fault.code, text[fault.span.start : fault.span.end]) for fault in find_faults(text)]


def advice(text):
    (fault,) = find_faults(text)
    return fault.advice


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(event.data.a) event.data.b", [("JS111", "(event.data.a)"), ("JS105", "event.data.b")]),
        ("(event.data.a) + event.data.b", [("JS111", "(event.data.a)")]),
        ("((event.data.a))", [("JS111", "((event.data.a))"), ("JS111", "(event.data.a)")]),
        ("(event.data.a))", [("JS111", "(event.data.a)"), ("JS123", ")")]),
        ("(event.data.a).b", [("JS111", "(event.data.a)")]),
        ("(+ 'x')", [("JS111", "(+ 'x')"), ("JS106", "+")]),
        ("event.data.a)) + 'x'", [("JS123", ")"), ("JS123", ")")]),
    ],
)
def test_parentheses_are_told_of_and_read_into(text, expected):
    assert told(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".5 + 'x'", [("JS118", ".")]),
        ("'x' + .event.data.a", [("JS118", ".")]),
        ("'x' + 'y' + .event.data.a", [("JS118", ".")]),
        (".event.in", [("JS118", "."), ("JS109", "in")]),
        ("event.data.a + .", [("JS122", ".")]),
        (". + + 'x'", [("JS122", "."), ("JS106", "+")]),
        ("event.data.-", [("JS122", "-")]),
    ],
)
def test_a_dot_needs_a_name_on_both_sides(text, expected):
    assert told(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'x'.a", [("JS122", ".a")]),
        ("'x'.?a", [("JS119", ".?"), ("JS122", ".?a")]),
        ("event.data.a[0].?b", [("JS112", "[0]"), ("JS119", ".?")]),
        ("'x'('y')", [("JS111", "('y')")]),
        ("'x'.size()", [("JS110", "size()")]),
        ("event.data.a.size().b", [("JS110", "size()")]),
        ("size(event.data.a)", [("JS110", "size(event.data.a)")]),
        ("event.data.a[0 + 'x'", [("JS112", "[")]),
    ],
)
def test_what_is_selected_from_a_term_is_told_of_with_it(text, expected):
    assert told(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-1 + 'x'", [("JS113", "-1")]),
        ("-1 'x'", [("JS113", "-1"), ("JS105", "'x'")]),
        ("event.data.a == + 'b'", [("JS114", "=="), ("JS106", "+")]),
        ("event.data.a == 'x' : 'b'", [("JS114", "=="), ("JS123", ":")]),
        ("event.data.a ? event.data.b == 'c' : 'd'", [("JS114", "?")]),
    ],
)
def test_an_operator_is_told_of_by_the_loosest(text, expected):
    assert told(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("event.data.a // note\n'x'", [("JS117", "// note"), ("JS105", "'x'")]),
        ("'x\n+", [("JS102", "'x")]),
    ],
)
def test_a_comment_ends_with_its_line_and_a_string_that_is_not_closed_with_the_text(text, expected):
    assert told(text) == expected


@pytest.mark.parametrize(
    ("text", "is_in_name"),
    [
        ("event.data.order-id", True),
        ("event.data.a-b + 'x'", True),
        ("event.data.a-event.data.b", False),
        ("event.data.a - b", False),
        ("event.data.a-1", True),
        ("event.data.a-", False),
    ],
)
def test_a_minus_between_letters_is_meant_as_part_of_a_name(text, is_in_name):
    assert ("this is a minus" in advice(text)) == is_in_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data", "write `event.data.data` for a field, `'data'` for a text"),
        ("data.a", "write `event.data.a`"),
        (f"data.{'a' * 29}", f"write `event.data.{'a' * 29}`"),
        (f"data.{'a' * 30}", "write `event.data.<path>`"),
        ("events.data.a", "did you mean `event.data.a`?"),
        ("exent.data.a", "did you mean `event.data.a`?"),
        ("evvvent.data.a", BELOW_DATA),
        ("ever.data.a", BELOW_DATA),
        ("event.data_.a", "did you mean `event.data.a`?"),
        ("event.dxxa.a", INSIDE_DATA),
        ("evnt.data", BELOW_DATA),
    ],
)
def test_a_path_that_is_nearly_right_is_told_what_it_may_mean(text, expected):
    assert advice(text) == expected


@pytest.mark.parametrize("index", ["['a']", '["a"]'])
def test_an_index_by_a_name_is_told_as_a_field(index):
    assert advice(f"event.data.x{index}") == "write `.a`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("r'x'", "a raw string"),
        ("rb'x'", "a bytes string"),
        ("X'x'", "a string with the prefix `x`"),
        ("'''x'''", "a triple-quoted string"),
    ],
)
def test_a_string_that_is_none_of_a_key_s_is_told_by_its_kind(text, expected):
    (fault,) = find_faults(text)
    assert fault.message == f"{expected} can't be part of a key"


def test_an_open_string_is_told_to_be_closed_with_its_own_quote():
    assert advice("X'x") == "close it with ' on the same line"
    assert advice('"x') == 'close it with " on the same line'


@pytest.mark.parametrize("escape", [r"\ud800", r"\udfff", r"\U0000D800", r"\U00110000"])
def test_an_escape_of_what_is_no_character_is_refused(escape):
    (fault,) = find_faults(f"'{escape}'")
    assert fault.message == f"the escape `{escape}` is no character"


@pytest.mark.parametrize("escape", [r"\ud7ff", r"\ue000", r"\U0010FFFF"])
def test_the_characters_beside_those_are_taken(escape):
    KeyTemplate.parse(f"'{escape}'")


@pytest.mark.parametrize("escape", [r"\q", r"\x", r"\u", r"\400"])
def test_an_escape_that_there_is_none_of_is_refused(escape):
    (fault,) = find_faults(f"'{escape}'")
    assert fault.message == f"there is no escape `{escape}`"


def test_a_long_piece_is_shown_cut_to_forty_characters():
    assert quoted("a" * 40) == f"`{'a' * 40}`"
    assert quoted("a" * 41) == f"`{'a' * 37}...`"
