"""Each malformed text is told what is wrong with it, where, and what to write instead."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from golden import agrees
from jobspec.diagnostics import RULES
from jobspec.keys import KeyTemplate, KeyTemplateError
from jobspec.keys.reader import MOST_FAULTS
from jobspec.keys.refusals import refusals
from vectors import rows

HERE = Path(__file__).parent
MALFORMED = tomllib.loads((HERE / "malformed.toml").read_text(encoding="utf-8"))


def faults(text):
    try:
        KeyTemplate.parse(text)
    except KeyTemplateError as error:
        return error.diagnostics
    return ()


def refused(text):
    found = faults(text)
    assert found, f"{text!r} is accepted"
    return found


def shown(found):
    """The line with the fault, a caret under it, and what is said."""
    line, column = found.source.position(found.span.start)
    end = found.source.position(found.span.end)
    text = found.source.line(line)
    width = end.column - column if end.line == line else len(text) - column + 1
    return "\n".join(
        (
            f"{found.code} at {line}:{column}",
            "  " + text,
            "  " + " " * (column - 1) + "^" * max(width, 1),
            f"  {found.message}",
            f"  help: {found.help}",
            "",
        )
    )


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_text_is_told_what_is_wrong_with_it(name):
    told = "\n".join(map(shown, refused(MALFORMED[name])))
    assert agrees(told, HERE / "golden" / f"{name}.txt")


def test_every_golden_file_has_its_text():
    assert {file.stem for file in (HERE / "golden").iterdir()} == set(MALFORMED)


def test_every_code_of_keys_is_told_to_one_of_the_texts():
    told = {found.code for text in MALFORMED.values() for found in refused(text)}
    assert told == {code for code in RULES if "JS101" <= code <= "JS139"}


def test_what_is_told_shows_no_name_of_the_grammar_and_no_python():
    grammar = re.compile(r"\b(?:[A-Z]{3,}|_[A-Z]+|None|Token|Span)\b|\\u[0-9a-f]{4}'")
    for text in MALFORMED.values():
        for found in refused(text):
            said = found.message.replace("EVENT", "")
            assert not grammar.search(said.replace("U+FEFF", "")), said
            assert found.message[:1] == found.message[:1].lower()


def test_whether_a_refused_text_is_valid_cel_is_told_as_the_reference_judges_it():
    for row in rows("validity"):
        allowed = "allows it; a key does not" if row["valid"] else "does not allow it either"
        verdict = f"(CEL, the expression language of Inngest, {allowed})"
        assert all(found.help.endswith(verdict) for found in faults(row["expr"])), row["expr"]


def test_an_error_reads_as_a_line_for_each_fault_and_one_for_its_help():
    with pytest.raises(KeyTemplateError) as error:
        KeyTemplate.parse("event.name + 1")
    lines = str(error.value).splitlines()
    assert lines[::2] == [
        "<key>:1:1: error[JS107]: `event.name` is not under `event.data`",
        "<key>:1:14: error[JS113]: a number can't be part of a key",
    ]
    assert [line[:8] for line in lines[1::2]] == ["  help: "] * 2


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("${event.data.repo.id}", "event.data.repo.id"),
        ("{{ event.data.a_b.c }}", "event.data.a_b.c"),
        ("${repo.id}", "event.data.id"),
    ],
)
def test_what_to_write_instead_of_a_placeholder_is_its_own_field(text, field):
    (found, *_) = refused(text)
    assert f"join it with `+`: `{field} + '/x'` (" in found.help


def test_half_of_a_surrogate_pair_is_refused_and_never_printed():
    (found,) = refused("event.data.a + 'x\ud800'")
    assert found.span == (17, 18)
    assert found.message == "half of a surrogate pair is not a character"
    assert found.help.startswith("write the whole character (")


@pytest.mark.parametrize(
    "text",
    ["'" * 10**6, "(" * 10**6, "[]" * 10**5, "-" * 10**5, "event.data" + ".a" * 10**5 + "["],
    ids=lambda text: text[:2],
)
def test_much_nonsense_is_refused_with_not_too_much_to_read(text):
    assert 1 <= len(refused(text)) <= MOST_FAULTS


def test_a_text_whose_construct_has_no_name_is_refused_as_a_whole():
    (found,) = refusals("event.data.accepted")  # no text is known that would get here otherwise
    assert found.code == "JS123"
    assert found.span == (0, 19)
    assert found.message == "this is not a key"
    assert found.help.startswith("write fields and quoted texts joined by `+` (")
