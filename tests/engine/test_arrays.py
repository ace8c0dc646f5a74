"""Columns on their way to the database: each value arrives as it was."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from jobspec_engine.arrays import (
    BigIntegers,
    Booleans,
    Digests,
    Integers,
    Intervals,
    Texts,
    teach,
)

COLUMNS = [
    (Texts, "text", ["", "a", "NULL", '{"x": "\\u0000"}', "🚀 ü\n\t,{}\"'", "x" * 100_000]),
    (Digests, "bytea", [b"", b"\0\xff" * 16]),
    (Integers, "integer", [0, -1, 2**31 - 1]),
    (BigIntegers, "bigint", [0, -1, 2**63 - 1]),
    (Booleans, "boolean", [True, False]),
    (
        Intervals,
        "interval",
        [timedelta(0), timedelta(days=7, microseconds=1), timedelta(days=-1, seconds=5)],
    ),
]


@pytest.mark.parametrize(("kind", "name", "values"), COLUMNS, ids=[name for _, name, _ in COLUMNS])
@pytest.mark.parametrize("empty", [None, "with nulls", "only nulls", "no value", "alike"])
def test_a_column_arrives_as_it_was(connection, kind, name, values, empty):
    column = {
        None: values,
        "with nulls": [None, *values, None],
        "only nulls": [None, None],
        "no value": [],
        "alike": [values[-1]] * 3,
    }[empty]
    query = "select array(select unnest(%s)), pg_typeof(%s)::text"
    found = connection.execute(query, [kind(column), kind(column)]).fetchone()
    assert found == (column, f"{name}[]")


def test_text_is_written_in_the_encoding_of_its_connection(dsn):
    with psycopg.connect(dsn, client_encoding="latin1") as connection:
        assert connection.execute("select %s", [Texts(["ü", None])]).fetchone() == (["ü", None],)


def test_a_connection_that_was_there_before_learns_of_columns(dsn):
    with psycopg.connect(dsn, context=psycopg.adapt.AdaptersMap(psycopg.adapters)) as connection:
        connection.adapters.register_dumper(Texts, psycopg.types.array.ListDumper)
        teach(connection)
        assert connection.execute("select %s", [Texts([None])]).fetchone() == ([None],)
