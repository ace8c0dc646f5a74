"""Connections of our own, where statements are executed without a cursor."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.generators import fetch_many
from psycopg.pq import ExecStatus

from jobspec_engine import own_connections
from jobspec_engine.calls import Call, fetch
from jobspec_engine.database import is_away
from jobspec_engine.own_connections import OwnConnection

PREPARED = "select statement, parameter_types::text[] from pg_prepared_statements"


@pytest.fixture
def own(empty_dsn):
    with OwnConnection.connect(empty_dsn, autocommit=True) as connection:
        yield connection


def tell(own, value):
    return fetch(own, Call(b"select %(value)s + 1", {"value": value}, tuple))


def prepared(own):
    return own.execute(PREPARED, prepare=False).fetchall()


def test_a_statement_is_prepared_once_it_was_used_as_often_as_the_threshold_says(own):
    own.prepare_threshold = 2
    assert [tell(own, n) for n in range(2)] == [[(1,)], [(2,)]]
    assert prepared(own) == []
    assert [tell(own, n) for n in range(2)] == [[(1,)], [(2,)]]
    assert prepared(own) == [("select $1 + 1", ["smallint"])]


def test_a_statement_is_another_one_where_its_parameters_are_of_other_types(own):
    own.prepare_threshold = 0
    assert [tell(own, value) for value in (1, 100_000, 1)] == [[(2,)], [(100_001,)], [(2,)]]
    assert sorted(prepared(own)) == [
        ("select $1 + 1", ["integer"]),
        ("select $1 + 1", ["smallint"]),
    ]


def test_nothing_is_prepared_through_a_pooler(own):
    own.prepare_threshold = None
    tell(own, 1)
    assert prepared(own) == []


def test_a_statement_that_fails_says_why_and_leaves_the_connection_fit(own):
    own.prepare_threshold = 0
    wrong = Call(b"select 1 / %(value)s", {"value": 0}, tuple)
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero"):
            fetch(own, wrong)
        with pytest.raises(psycopg.errors.SyntaxError, match="nothing"):
            fetch(own, Call(b"nothing", {}, tuple))
    assert tell(own, 1) == [(2,)]
    assert len(prepared(own)) == 2


def test_what_is_done_meanwhile_is_done_before_the_rows_are_here(own):
    done = []
    call = Call(b"select 1", {}, lambda row: (*done, *row), meanwhile=lambda: done.append("done"))
    assert fetch(own, call) == [("done", 1)]


def test_what_goes_wrong_meanwhile_leaves_the_connection_fit(own):
    def go_wrong():
        raise ValueError("meanwhile")

    with pytest.raises(ValueError, match="meanwhile"):
        fetch(own, Call(b"select 1", {}, tuple, meanwhile=go_wrong))
    assert tell(own, 1) == [(2,)]


def test_a_line_that_breaks_behind_an_answer_is_told_of(own, monkeypatch):
    def broken(pgconn):
        results = yield from fetch_many(pgconn)
        return [*results, pgconn.make_empty_result(ExecStatus.FATAL_ERROR)]

    monkeypatch.setattr(own_connections, "fetch_many", broken)
    with pytest.raises(psycopg.errors.DivisionByZero):
        fetch(own, Call(b"select 1 / 0", {}, tuple))
    with pytest.raises(psycopg.Error) as told:
        tell(own, 1)
    assert is_away(told.value)
