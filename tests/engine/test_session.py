"""Connections of our own, where statements are executed without a cursor."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
from psycopg.generators import fetch_many
from psycopg.pq import ExecStatus

from jobspec_engine import session
from jobspec_engine.calls import Call, fetch
from jobspec_engine.database import is_away, pause_before_again
from jobspec_engine.own_connections import OwnConnection
from jobspec_engine.persistence import Persistence
from jobspec_engine.pools import Pool

ONE = Call(b"select n from generate_series(1, 1) as n", {}, tuple)
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


def change_types(own):
    """Have a table's column be of another type, as a later migration does."""
    with psycopg.connect(own.info.dsn, autocommit=True) as migrating:
        migrating.execute("alter table told alter n type bigint")


OUTDATES = {
    "a migration changes the types of its rows": change_types,
    "its session forgets all": lambda own: own.execute("deallocate all", prepare=False),
    "a pooler cleans its session": lambda own: own.execute("discard all", prepare=False),
}
TOLD = Call(b"select n from told", {}, tuple)


@pytest.fixture
def told(own):
    """Return a connection with a statement that is prepared."""
    own.prepare_threshold = 0
    own.execute("create table told as select 1 as n", prepare=False)
    assert fetch(own, TOLD) == [(1,)]
    return own


@pytest.mark.parametrize("outdate", OUTDATES.values(), ids=OUTDATES)
def test_a_statement_that_is_no_longer_prepared_is_executed_anew_and_prepared_again(told, outdate):
    outdate(told)
    done = []
    call = replace(TOLD, meanwhile=lambda: done.append("once"))
    assert fetch(told, call) == [(1,)]
    assert done == ["once"]
    already = len(prepared(told))
    assert fetch(told, TOLD) == fetch(told, TOLD) == [(1,)]
    assert len(prepared(told)) == already + 1


@pytest.mark.parametrize("outdate", OUTDATES.values(), ids=OUTDATES)
def test_in_a_transaction_it_is_an_error_once_and_the_next_transaction_goes_well(told, outdate):
    tell(told, 1)
    outdate(told)
    with pytest.raises(psycopg.Error) as error, told.transaction():
        fetch(told, TOLD)
    assert is_away(error.value)
    assert pause_before_again(error.value, 1, harmless=False) < 1
    with told.transaction():
        assert (fetch(told, TOLD), tell(told, 1)) == ([(1,)], [(2,)])


def test_what_the_database_does_not_support_is_not_tried_again(own):
    own.prepare_threshold = 0
    wrong = Call(b"select coalesce(%(value)s, generate_series(1, 2))", {"value": 1}, tuple)
    with pytest.raises(psycopg.errors.FeatureNotSupported) as error:
        fetch(own, wrong)
    assert not is_away(error.value)
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        pause_before_again(error.value, 1, harmless=True)


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


def test_a_transaction_of_a_client_is_tried_again_where_a_statement_is_no_longer_prepared(dsn):
    tries = []

    def calls(number):
        tries.append(number)
        yield from (ONE for _ in range(3))  # now it is prepared
        if number == 1:
            yield Call(b"deallocate all", {}, tuple)
        return (yield ONE)

    pool = Pool(dsn, "jobspec", 1, timedelta(seconds=10))
    pool.open()
    try:
        assert pool.drive(calls, whole=True) == [(1,)]
    finally:
        pool.close()
    assert tries == [1, 2]


async def test_a_statement_of_a_worker_that_is_no_longer_prepared_is_executed_anew(dsn):
    async with Persistence(dsn, 30) as database:
        await database.fetch_once(ONE)
        await database.fetch_once(Call(b"deallocate all", {}, tuple))
        assert await database.fetch_once(ONE) == await database.fetch_once(ONE) == [(1,)]


async def test_a_transaction_of_a_worker_is_tried_again_where_a_statement_is_no_longer_prepared(
    dsn,
):
    tries = []

    def calls():
        tries.append(len(tries))
        yield ONE
        if tries == [0]:
            yield Call(b"deallocate all", {}, tuple)
        return (yield ONE)

    async with Persistence(dsn, 30) as database:
        assert await database.transact(calls) == [(1,)]
    assert tries == [0, 1]


def test_a_line_that_breaks_behind_an_answer_is_told_of(own, monkeypatch):
    def broken(pgconn):
        results = yield from fetch_many(pgconn)
        return [*results, pgconn.make_empty_result(ExecStatus.FATAL_ERROR)]

    monkeypatch.setattr(session, "fetch_many", broken)
    with pytest.raises(psycopg.errors.DivisionByZero):
        fetch(own, Call(b"select 1 / 0", {}, tuple))
    with pytest.raises(psycopg.Error) as told:
        tell(own, 1)
    assert is_away(told.value)
