"""What a handler is given: its fields are written once more where it is made."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature

import pytest

from jobspec_engine.context import Context
from jobspec_engine.received import ReceivedEvent


@pytest.mark.parametrize("kind", [Context, ReceivedEvent])
def test_each_field_is_what_was_given_by_its_name(kind):
    names = [field.name for field in fields(kind)]
    given = kind(**{name: name for name in names})
    assert [getattr(given, name) for name in names] == names
    assert [*signature(kind).parameters] == names


def test_a_number_that_only_postgres_reads_is_told_with_its_place():
    event = ReceivedEvent("id", "event", 0, '{"n": %s}' % ("1" * 5000))
    with pytest.raises(ValueError, match=r"a number has 5,000 digits, .* column 7 \(char 6\)"):
        _ = event.data
