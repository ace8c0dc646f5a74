"""Keys are the reference's: every recorded row, and every verdict on what may be one."""

from __future__ import annotations

import re

import pytest

from jobspec.keys import KeyTemplate, KeyTemplateError
from reference.model import answer
from vectors import rows

OUTCOMES = {"yes": "key", "skip": "absent", "error": "error"}

# What DESIGN §4 calls a key template, read without our grammar. `validity.jsonl` has the escapes.
NAME = r"(?!(?:true|false|null|in)\b)[A-Za-z_]\w*"
FIELD = rf"event \s* \. \s* data (?: \s* \. \s* {NAME} )+"
TEXT = r""" '(?!'') (?: [^'\\\n\r] | \\. )* ' (?!') | "(?!"") (?: [^"\\\n\r] | \\. )* " (?!") """
SUBSET = re.compile(
    rf"\s* (?: {FIELD} | {TEXT} ) (?: \s* \+ \s* (?: {FIELD} | {TEXT} ) )* \s*",
    re.ASCII | re.VERBOSE,
)


def recorded(row):
    return row.get("key", "<invalid>"), OUTCOMES[row["rate_limited"]]


def accepted(text):
    try:
        KeyTemplate.parse(text)
    except KeyTemplateError:
        return False
    return True


def test_every_recorded_key_is_resolved_to_its_text_and_outcome():
    valid = [row for row in rows("keys") if row["valid"]]
    assert len(valid) > 11_000
    for row in valid:
        key = KeyTemplate.parse(row["expr"]).resolve(row["event"])
        assert (key.text, key.outcome) == recorded(row), row["expr"]


def test_every_recorded_template_that_registration_refuses_is_refused():
    invalid = [row for row in rows("keys") if not row["valid"]]
    assert len(invalid) > 300
    assert [row["expr"] for row in invalid if accepted(row["expr"])] == []


def test_the_naive_model_gives_every_recorded_key_refused_ones_too():
    for row in rows("keys"):
        assert answer(row["expr"], row["event"]) == recorded(row), row["expr"]


@pytest.mark.parametrize("valid", [True, False])
def test_what_is_accepted_is_what_is_in_the_subset_and_valid(valid):
    chosen = [row["expr"] for row in rows("validity") if row["valid"] is valid]
    for text in chosen:
        in_subset = SUBSET.fullmatch(text) is not None
        assert accepted(text) == (in_subset and valid), text
