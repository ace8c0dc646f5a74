"""Whether a pattern of a JSON Schema lets a text through, as far as that can be told."""

from __future__ import annotations

import pytest

from jobspec.events.patterns import can_contain


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^[a-z/]+$", "/"),
        (r"^\S+$", "/"),
        ("^.*$", "/"),
        ("^a/b$", "/"),
        (r"^a\/b$", "/"),
        ("^(?:a|b/c)$", "/"),
        ("^(a/)+$", "/"),
        ("^[^:]+$", "/"),
        ("^[]/]+$", "/"),
        ("^[:a-z]+$", "::"),
        ("^[:a-z]{2,}$", "::"),
        ("^[a-z-]{1,9}$", "-"),
    ],
)
def test_a_pattern_that_takes_the_separator_contains_it(pattern, text):
    assert can_contain(pattern, text) is True


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^[a-z]+$", "/"),
        (r"^\d+$", "/"),
        (r"^\w+$", "-"),
        ("^(a|b)?[0-9]{4}$", "/"),
        ("^[^/]+$", "/"),
        ("^[a-z:]+$", ":/"),
        ("^$", "/"),
        (r"^a\.b$", "-"),
    ],
)
def test_a_pattern_that_has_no_place_for_the_separator_does_not(pattern, text):
    assert can_contain(pattern, text) is False


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[a-z]+", "/"),  # not bound: anything can stand around it
        ("^[a-z]+", "/"),
        ("[a-z]+$", "/"),
        ("^a|b$", "/"),
        (r"^[a-z]+\$", "/"),
        ("^(?=a).*$", "/"),
        ("^(?!/).*$", "/"),
        (r"^(.)\1$", "/"),
        (r"^\bx$", "/"),
        (r"^\u{61}$", "/"),
        ("^[[a]$", "["),
        ("^[z-a]$", "/"),
        ("^(ab$", "/"),
        ("^/{٣}$", "/"),  # no number to a regular expression
        ("^a:b$", ":b"),  # it can, but only by chance is that seen
    ],
)
def test_of_any_other_pattern_nothing_is_known(pattern, text):
    assert can_contain(pattern, text) is None
