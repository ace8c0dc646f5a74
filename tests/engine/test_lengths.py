"""Lengths of time on their way to the database, as text: any server reads the longest."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobspec_engine.lengths import as_text

LENGTHS = {
    timedelta(0): "0:00:00.000000",
    timedelta(microseconds=1): "0:00:00.000001",
    timedelta(hours=1, seconds=-1): "0:59:59.000000",
    timedelta(days=36_500, seconds=61): "876000:01:01.000000",
    -timedelta(hours=25, microseconds=5): "-25:00:00.000005",
}


@pytest.mark.parametrize(("length", "text"), LENGTHS.items(), ids=str)
@pytest.mark.parametrize("style", ["postgres", "postgres_verbose", "sql_standard", "iso_8601"])
def test_a_length_is_written_in_hours_and_read_alike_in_any_style(connection, style, length, text):
    assert as_text(length) == text
    connection.execute(f"set intervalstyle = {style}")
    query = "select extract(epoch from %s::interval) * 1000000, extract(day from %s::interval)"
    assert connection.execute(query, [text, text]).fetchone() == (
        length // timedelta(microseconds=1),
        0,
    )
