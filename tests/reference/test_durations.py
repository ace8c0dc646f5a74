"""Every duration that the reference was asked about, in both of its dialects."""

from __future__ import annotations

import pytest

from jobspec.durations import DurationError, go_nanoseconds, nanoseconds
from vectors import rows

DIALECTS = {"ns": nanoseconds, "go_ns": go_nanoseconds}


def read(text, dialect):
    try:
        return DIALECTS[dialect](text)
    except DurationError:
        return None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_duration_is_what_the_reference_says(dialect):
    wrong = [
        (row["text"], row[dialect], read(row["text"], dialect))
        for row in rows("durations")
        if read(row["text"], dialect) != row[dialect]
    ]
    assert wrong == []
