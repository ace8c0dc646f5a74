"""The template as a value: its terms, its text, what it equals."""

from __future__ import annotations

import copy
import pickle
import sys

import pytest

from jobspec.keys import KeyTemplate
from jobspec.keys.resolve import _fast, fast_source, lookups_of
from jobspec.keys.terms import Field, Literal
from jobspec.source import Span

MAIN = "event.data.installationId + '/' + event.data.repoOwner + '/' + event.data.repoName"


def test_terms_know_where_they_stand():
    field, literal = KeyTemplate.parse("event . data\n.ab.c+ '\\''").terms
    assert isinstance(field, Field)
    assert (field.path, field.span) == (("ab", "c"), Span(0, 18))
    assert field.steps == (Span(14, 16), Span(17, 18))
    assert isinstance(literal, Literal)
    assert (literal.text, literal.raw, literal.quote) == ("\\'", "\\'", "'")
    assert literal.span == Span(20, 24)


def test_paths_are_told_once_each_in_order():
    template = KeyTemplate.parse("event.data.b + event.data.a.c + event.data.b")
    assert template.paths == (("b",), ("a", "c"))


def test_a_template_keeps_its_text_and_prints_in_its_plainest_form():
    text = ' event . data.a+\t"x"\n'
    template = KeyTemplate.parse(text)
    assert template.text == text
    assert str(template) == 'event.data.a + "x"'


def test_printing_does_not_switch_escapes_on():
    template = KeyTemplate.parse(r"event.data.vars .a + '\n'")
    assert str(template) == r"event.data.vars .a + '\n'"
    assert KeyTemplate.parse(str(template)) == template


def test_templates_are_equal_when_their_terms_mean_the_same():
    assert KeyTemplate.parse("event.data.a+'x'") == KeyTemplate.parse('event.data . a + "x"')
    assert KeyTemplate.parse("event.data.a+'x'") != KeyTemplate.parse("event.data.a+'y'")
    raw, escaped = KeyTemplate.parse(r"'\n'"), KeyTemplate.parse(r"'\n' + event.data.vars.a")
    assert raw.terms[0] != escaped.terms[0]


def test_a_template_survives_pickle_and_copy():
    template = KeyTemplate.parse(MAIN)
    template.resolve({})
    for other in (pickle.loads(pickle.dumps(template)), copy.deepcopy(template)):  # noqa: S301 - our own
        assert other == template
        assert other.resolve({"data": {"repoOwner": "x"}}).text == "/x/"


def test_a_template_can_not_be_changed():
    with pytest.raises(AttributeError):
        KeyTemplate.parse("'x'").text = "'y'"


def test_white_space_is_cel_s_five_characters_and_no_other():
    assert KeyTemplate.parse(" \t\n\f\revent \t\n\f\r. \t\n\f\rdata.a").paths == (("a",),)
    for other in "\v\x1c\x85\xa0\u2028\u3000":
        with pytest.raises(ValueError, match="has no place in a key"):
            KeyTemplate.parse(f"event.data.a{other}")


def test_reserved_words_but_four_may_name_fields():
    for name in ("for", "if", "package", "var", "event", "data", "trueish", "in_", "nullable"):
        assert KeyTemplate.parse(f"event.data.{name}.{name}").paths == ((name, name),)


def events_of_calls(count):
    """How many calls and lines of ours it takes to resolve a template of `count` terms."""
    names = [f"n{number}" for number in range(count)]
    resolve = KeyTemplate.parse(" + ".join(f"event.data.{name}" for name in names)).resolve
    event = {"data": dict.fromkeys(names, "\ud800")}  # half a character: the general way
    steps = 0

    def count_step(*_):
        nonlocal steps
        steps += 1
        return count_step

    before = sys.gettrace()
    sys.settrace(count_step)
    try:
        key = resolve(event)
    finally:
        sys.settrace(before)
    assert key.text == "\ufffd" * count
    return steps


def test_resolving_takes_steps_in_proportion_to_the_terms():
    few, many = events_of_calls(500), events_of_calls(4000)
    assert many < few * 8.1


def test_the_fast_way_has_one_item_for_each_term():
    template = KeyTemplate.parse(" + ".join(f"event.data.a.n{i % 7} + '/'" for i in range(1000)))
    source = fast_source(template.terms, lookups_of(template.paths))
    assert len(source) < 60 * len(template.terms)
    event = {"data": {"a": {f"n{i}": "x" for i in range(7)}}}
    assert template.resolve(event).text == "x/" * 1000


def fast(text):
    """The function of a template whose general way is to say that it was taken."""
    template = KeyTemplate.parse(text)
    return _fast(template.terms, lookups_of(template.paths), lambda _: "general")


@pytest.mark.parametrize(
    ("value", "text"), [("x", "x"), ("é", "é"), (12345678, "1.2345678e+07"), (-0.5, "-0.5")]
)
def test_texts_and_numbers_are_resolved_the_fast_way(value, text):
    event = {"data": {"a": value, "b": {"c": "y"}}}
    assert fast("event.data.a + '/' + event.data.b.c")(event).text == f"{text}/y"
    assert fast("event.data.a")(event).text == text


@pytest.mark.parametrize(
    "value", [None, True, [], {}, "\ud800", 10**400, float("nan"), float("inf"), object()]
)
def test_anything_else_is_resolved_the_general_way(value):
    event = {"data": {"a": value}}
    assert fast("event.data.a + '/'")(event) == "general"
    assert fast("event.data.b + '/'")(event) == "general"


def test_numbers_that_add_up_are_resolved_the_general_way():
    template = "event.data.a + event.data.b + '/'"
    event = {"data": {"a": 1, "b": 2}}
    assert fast(template)(event) == "general"
    assert KeyTemplate.parse(template).resolve(event).text == "3/"


def test_many_templates_of_shared_beginnings_look_each_step_up_once():
    paths = [("a", "b", name) for name in "cdefg"]
    assert len(lookups_of(paths).steps) == 2 + 2 + 5


@pytest.mark.parametrize("value", [None, b"event.data.a", 5])
def test_what_is_no_text_is_a_type_error_that_says_so(value):
    kind = type(value).__name__
    with pytest.raises(TypeError, match=f"a key template is a text, and this is of type {kind}"):
        KeyTemplate.parse(value)


def test_a_text_that_begins_the_template_begins_at_its_beginning():
    (literal,) = KeyTemplate.parse("'x'").terms
    assert literal.span == Span(0, 3)
