"""Statements that are made to meet in a chosen order."""

from __future__ import annotations

from functools import partial
from threading import Event

import psycopg

from databases import together
from enginekit import blocked, until


def meeting(dsn, connection, locks, *calls, end=psycopg.Connection.commit, done=None):
    """Have calls begin one after the other, each when the ones before wait; then let them go on.

    `locks` is the query that locks what the first of them waits for, in a transaction that `end`
    ends. The last need not wait if it sets `done`.
    """
    done = done or Event()
    with psycopg.connect(dsn) as stopping:
        stopping.execute(locks)

        def turn(number, call):
            until(lambda: blocked(connection, number), f"the wait of {number} before")
            return call()

        def go_on():
            until(lambda: done.is_set() or blocked(connection, len(calls)), "the wait of all")
            end(stopping)

        turns = [partial(turn, number, call) for number, call in enumerate(calls)]
        return together(*turns, go_on)[:-1]


def assert_no_error(told):
    for one in told:
        assert not isinstance(one, Exception), one
