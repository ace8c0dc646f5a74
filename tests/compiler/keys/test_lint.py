"""The traps of keys that their text alone shows, and the look-alikes that are none."""

from __future__ import annotations

import sys

import pytest

from jobspec.keys import KeyTemplate
from jobspec.keys.lint import lint, unseparated

KEYED = ["debounce", "rateLimit", "throttle", "batchEvents", "singleton"]


def codes(text, option="debounce"):
    return [fault.code for fault in lint(KeyTemplate.parse(text), option)]


def shown(text, option="debounce"):
    (fault,) = lint(KeyTemplate.parse(text), option)
    return text[slice(*fault.span)]


def sum_of(count):
    return " + ".join(f"event.data.f{number}" for number in range(count))


@pytest.mark.parametrize(
    "text",
    [
        "event.data.a",
        "event.data.a + '/' + event.data.b",
        "'a' + event.data.a",
        "event.data.vars",
        "event.data.vars .a + '/' + event.data.b",
        "event.data.a + event.data.ab",
        "event.data.a.b + event.data.a.c",
        sum_of(10),
    ],
)
def test_an_honest_key_has_no_traps(text):
    assert codes(text) == []


@pytest.mark.parametrize("option", KEYED)
def test_a_key_without_a_field_does_nothing(option):
    assert codes("'a' + 'b'", option) == ["JS431"]
    assert shown("'a' + 'b'", option) == "'a' + 'b'"


def test_an_idempotency_key_without_a_field_lets_the_job_run_once():
    assert codes("'a'", "idempotency") == ["JS432"]


def test_a_concurrency_key_without_a_field_is_how_jobs_share_a_limit():
    assert codes("'openai'", "concurrency") == []


def test_a_backslash_is_taken_as_it_is():
    assert codes(r"event.data.a + '\n'") == ["JS433"]
    assert shown(r"event.data.a + '\n'") == r"'\n'"


def test_each_text_with_a_backslash_is_told_of():
    assert codes(r"event.data.a + '\n' + '\t'") == ["JS433", "JS433"]


@pytest.mark.parametrize("text", ["event.data.vars.a", "event.data.a + 'xvars.'"])
def test_a_key_with_vars_has_its_escapes_processed(text):
    assert codes(text) == ["JS434"]
    assert shown(text) == "vars."


def test_the_first_of_several_vars_is_pointed_at():
    template = KeyTemplate.parse("event.data.vars.a + 'xvars.'")
    (fault,) = [fault for fault in lint(template, "debounce") if fault.code == "JS434"]
    assert fault.span.start == len("event.data.")


def test_a_backslash_in_a_key_with_processed_escapes_is_told_of_once():
    assert codes(r"event.data.vars.a + '\n'") == ["JS434"]


@pytest.mark.parametrize(
    "text", ["event.data.a + '/' + event.data.a.b", "event.data.a.b.c + '/' + event.data.a"]
)
def test_a_field_beside_one_of_its_own_is_told_of(text):
    assert codes(text) == ["JS435"]
    assert shown(text).startswith("event.data.a.b")


@pytest.mark.parametrize(
    ("count", "expected"),
    [(10, []), (11, ["JS436"]), (15, ["JS436"]), (16, ["JS437"]), (500, ["JS437"])],
)
def test_a_key_with_many_terms_is_slow_and_with_more_endless(count, expected):
    assert codes(sum_of(count)) == expected


def test_the_terms_beyond_the_limit_are_shown():
    assert shown(sum_of(12)) == "event.data.f10 + event.data.f11"


@pytest.mark.parametrize(
    ("text", "touching"),
    [
        ("event.data.a", []),
        ("event.data.a + '/' + event.data.b", []),
        ("'a' + event.data.a + 'b'", []),
        ("event.data.a + event.data.b", ["event.data.a + event.data.b"]),
        ("event.data.a + '' + event.data.b", ["event.data.a + '' + event.data.b"]),
        (
            "event.data.a+event.data.b+event.data.c",
            ["event.data.a+event.data.b", "event.data.b+event.data.c"],
        ),
    ],
)
def test_fields_that_touch_are_told_of(text, touching):
    faults = unseparated(KeyTemplate.parse(text))
    assert {fault.code for fault in faults} <= {"JS430"}
    assert [text[slice(*fault.span)] for fault in faults] == touching


def test_the_time_to_find_fields_beside_their_own_grows_with_their_number():
    template = KeyTemplate.parse(" + ".join(f"event.data.a{number}" for number in range(5_000)))
    calls = 0

    def count(*_):
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        lint(template, "debounce")
    finally:
        sys.setprofile(None)
    assert calls < 200_000  # one comparison of every two fields would be 25 million
