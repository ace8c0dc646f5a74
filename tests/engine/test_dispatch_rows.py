"""What an event is to start, before any database hears of it: one row for each job."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256

import pytest

from enginekit import job
from jobspec_engine.dispatch import (
    Dispatch,
    columns,
    dispatch,
    is_debounced,
    is_idempotent,
    is_plain,
    note_of,
)
from jobspec_engine.events import Event, encode_event

HOUR = timedelta(hours=1)
CANNOT_BE_ADDED = "adds values that can't be added for this event"


def row_of(data, **options):
    (compiled,) = job(**options).values()
    return dispatch(encode_event(Event("event", data, id="e")), data, compiled)


def digest(text):
    return sha256(text.encode()).digest()


@pytest.mark.parametrize(
    ("options", "data", "columns"),
    [
        ({}, {}, {}),
        ({"retries": 0}, {}, {"max_attempts": 1}),
        (
            {"idempotency": "event.data.k"},
            {"k": "a\0"},
            {"idempotency_digest": digest("a\0"), "idempotency_key": "a\N{SYMBOL FOR NULL}"},
        ),
        ({"idempotency": "event.data.k"}, {}, {}),
        (
            {"idempotency": {"key": "event.data.k", "window": HOUR}},
            {"k": "a"},
            {"idempotency_digest": digest("a"), "idempotency_key": "a", "key_window": HOUR},
        ),
        (
            {"idempotency": {"key": "event.data.k", "window": "while-active"}},
            {"k": "a"},
            {"idempotency_digest": digest("a"), "idempotency_key": "a", "while_active": True},
        ),
        (
            {"debounce": {"period": HOUR}},
            {},
            {"debounce_digest": digest(""), "debounce_key": "", "wait": HOUR},
        ),
        (
            {"debounce": {"period": HOUR, "key": "event.data.k", "timeout": 2 * HOUR}},
            {"k": "\0a"},
            {
                "debounce_digest": digest("\0a"),
                "debounce_key": "\N{SYMBOL FOR NULL}a",
                "wait": HOUR,
                "timeout": 2 * HOUR,
            },
        ),
        (
            {"debounce": {"period": HOUR, "key": "event.data.k"}},
            {},
            {"debounce_digest": digest("false"), "debounce_key": "false", "wait": HOUR},
        ),
    ],
)
def test_a_row_says_what_the_options_of_the_job_decide(options, data, columns):
    expected = Dispatch("e", "job", 5)._replace(**columns)
    assert row_of(data, **options) == expected


@pytest.mark.parametrize(
    ("once", "burst", "told"),
    [
        ("event.data.a + event.data.b", "event.data.c", "idempotency"),
        ("event.data.c", "event.data.a + event.data.b", "debounce"),
        ("event.data.a + event.data.b", "event.data.b + event.data.a", "idempotency"),
    ],
)
def test_a_key_that_is_an_error_is_told_with_its_option_and_the_first_counts(once, burst, told):
    data = {"a": True, "b": False, "c": "x"}
    row = row_of(data, idempotency=once, debounce={"period": HOUR, "key": burst})
    text = {"idempotency": once, "debounce": burst}[told]
    assert row.key_error == f"the {told} key `{text}` {CANNOT_BE_ADDED}"


@pytest.mark.parametrize(
    ("data", "note"),
    [
        ({"a": "x", "b": "y"}, None),
        ({"a": True, "b": True}, None),
        ({}, "no idempotency key: event.data.a, event.data.b is missing"),
        ({"a": False}, "no idempotency key: event.data.b is missing"),
        ({"b": 0, "a": None}, None),
    ],
)
def test_an_event_without_a_key_is_noted_with_what_it_lacks(data, note):
    (compiled,) = job(idempotency="event.data.a + event.data.b").values()
    assert note_of(row_of(data, idempotency="event.data.a + event.data.b"), data, compiled) == note


def test_a_key_that_is_false_is_noted_as_it_is():
    (compiled,) = job(idempotency="event.data.a").values()
    row = row_of({"a": False}, idempotency="event.data.a")
    assert note_of(row, {"a": False}, compiled) == "no idempotency key: `event.data.a` is false"


ONCE = {"idempotency": "event.data.a + event.data.b"}
BURST = {"debounce": {"period": HOUR, "key": "event.data.a + event.data.c"}}


@pytest.mark.parametrize(
    ("options", "data", "kinds"),
    [
        ({}, {}, [True, True, False]),
        (ONCE, {"a": "x"}, [False, True, False]),
        (ONCE, {}, [True, True, False]),
        (ONCE, {"a": True, "b": True}, [False, False, False]),
        (BURST, {"a": "x"}, [False, False, True]),
        (BURST, {"a": True, "c": True}, [False, False, False]),
        ({**ONCE, **BURST}, {"a": "x"}, [False, False, False]),
        ({**ONCE, **BURST}, {}, [False, False, True]),
        ({**ONCE, **BURST}, {"a": True, "b": True}, [False, False, False]),
    ],
)
def test_a_row_goes_by_the_smallest_statement_that_knows_all_of_it(options, data, kinds):
    row = row_of(data, **options)
    assert [is_plain(row), is_idempotent(row), is_debounced(row)] == kinds


def test_rows_are_turned_into_columns_even_where_there_are_none():
    assert columns([(1, "a"), (2, "b")], 2) == [[1, 2], ["a", "b"]]
    assert columns([], 2) == [[], []]
