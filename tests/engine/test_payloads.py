"""Events as callers really have them: all is kept as it was sent, or refused with a reason."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import ChainMap, OrderedDict, UserDict
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType

import psycopg
import pytest

from enginekit import count, job, jobs, run_of, run_until_idle, runs, used_keys
from jobspec import EventError
from jobspec_engine import AsyncClient, Client, Event

KEYED = {"idempotency": "event.data.key", "debounce": {"key": "event.data.key", "period": "1s"}}


class Name(StrEnum):
    EVENT = "event"


class Number(IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()


@pytest.fixture
def client(dsn):
    with Client(job(**KEYED), dsn) as client:
        yield client


def nested(depth, inner=None):
    value = inner
    for _ in range(depth):
        value = {"n": value}
    return {"deep": value}


def cyclic():
    value = {}
    value["inside"] = [value]
    return value


KEPT = {
    "U+0000": ({"a\0b": "c\0d"}, None),
    "a lone surrogate": ({"\ud800": "\udfff x"}, None),
    "emoji": ({"🚀": "👩‍👩‍👧‍👦"}, None),
    "a key of 100 kB": ({"k" * 100_000: 1}, None),
    "an integer beyond 64 bits": ({"n": 2**63 + 1, "m": -(10**300)}, None),
    "an integer beyond floats": ({"n": 10**400}, None),
    "floats": ({"n": [0.1, -0.0, 1e308, 5e-324]}, None),
    "an empty object": ({}, None),
    "empty keys": ({"": {"": ""}}, None),
    "odd white space": ({"k": "\u2028\u2029\ufeff\x7f\x85"}, None),
    "a tuple": ({"t": (1, 2)}, {"t": [1, 2]}),
    "a frozen mapping": (MappingProxyType({"a": MappingProxyType({"b": 1})}), {"a": {"b": 1}}),
    "a user's mapping": (UserDict({"a": UserDict(b=1)}), {"a": {"b": 1}}),
    "a chain of mappings": (ChainMap({"a": 1}, {"b": 2}), {"b": 2, "a": 1}),
    "an ordered mapping": (OrderedDict(b=1, a=2), None),
    "enums": ({"a": Name.EVENT, "b": Number.ONE}, {"a": "event", "b": 1}),
    "nesting 499 deep": (nested(498, {}), None),
    "what looks like SQL": ({"k": "'; drop table job_event; -- %s %(x)s {schema}"}, None),
}


@pytest.mark.parametrize("name", KEPT)
async def test_an_event_is_handed_to_its_handler_as_it_was_sent(dsn, connection, name):
    data, read = KEPT[name]
    seen = []

    async def handler(context):
        seen.append(context.event.data)
        return context.event.data

    compiled = job(handler=handler)
    with Client(compiled, dsn) as client:
        client.send("event", data)
    await run_until_idle(compiled, dsn)
    expected = data if read is None else read
    assert seen == [expected]
    assert list(seen[0]) == list(expected)
    (result,) = connection.execute("select result::text from jobspec.job_queue").fetchone()
    assert json.loads(result) == expected


KEYS = {
    "U+0000": ("a\0b", "a␀b"),
    "a symbol for U+0000": ("a␀b", "a␀b"),
    "a lone surrogate": ("a\ud800b", "a\ufffdb"),
    "emoji": ("🚀", "🚀"),
    "100 kB": ("x" * 100_000, "x" * 100_000),
    "nothing": ("", ""),
    "quotes": ("'\"\\", "'\"\\"),
    "an object": ({"b": [1, None], "a": "x"}, "map[a:x b:[1 <nil>]]"),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_key_of_any_content_works_in_constraints(client, connection, name):
    key, text = KEYS[name]
    first, second = (client.send("event", {"key": key}).jobs[0] for _ in range(2))
    assert (first.outcome, second.outcome) == ("enqueued", "duplicate")
    assert list(used_keys(connection)) == [text]
    assert run_of(connection).debounce_key == text


def test_keys_that_look_alike_to_people_stay_apart(client, connection):
    """The text has U+2400 for U+0000, which Postgres can't keep; the digest tells them apart."""
    for key in ("a\0b", "a␀b"):
        assert client.send("event", {"key": key}).jobs[0].outcome == "enqueued"
    assert len(runs(connection)) == 2


REFUSED = {
    "not an object": ([], "must be an object, not list"),
    "nothing": (None, "must be an object, not NoneType"),
    "text": ("x", "must be an object, not str"),
    "nan": ({"a": [1, float("nan")]}, r"event\.data\.a\[1\] is nan"),
    "infinity": ({"a": float("-inf")}, r"event\.data\.a is -inf"),
    "a set": ({"a": {1}}, r"event\.data\.a is of type set"),
    "bytes": ({"a": b"x"}, r"event\.data\.a is of type bytes"),
    "a decimal": ({"a": Decimal(1)}, r"event\.data\.a is of type Decimal"),
    "a key that is a number": ({"a": {1: 2}}, r"event\.data\.a has a key that is not text but int"),
    "a key that is nothing": ({None: 2}, r"event\.data has a key that is not text but NoneType"),
    "a key that is a truth": ({"a": [{True: 1}]}, r"event\.data\.a\[0\] has a key .* bool"),
    "a key that is a tuple": ({(1, 2): 3}, "a key that is not text but tuple"),
    "a cycle": (cyclic(), r"event\.data\.inside\[0\] contains itself"),
    "nesting 501 deep": (nested(500, {}), "nested too deeply: more than 500 levels"),
    "nesting 1,000 deep": (nested(1_000), "nested too deeply"),
    "nesting without end": (nested(100_000), "nested too deeply"),
    "an integer too long to print": (
        {"n": [10**5000]},
        r"event\.data\.n\[0\] is a number of more digits than the 4,300 that can be written",
    ),
    "more than 16 MiB": ({"x": "x" * (16 << 20)}, "16,777,216 can be kept"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_json_is_refused_with_its_place_and_nothing_is_written(
    client, connection, name
):
    data, reason = REFUSED[name]
    with pytest.raises(EventError, match=reason):
        client.send("event", data)
    assert count(connection, "job_event") == 0


REFUSED_ARGUMENTS = {
    "an empty name": ({"name": ""}, "event name must have 1 to 1024 bytes, this has 0"),
    "a long name": ({"name": "é" * 513}, "this has 1026"),
    "U+0000 in a name": ({"name": "a\0"}, r"event name holds U\+0000"),
    "half a pair in a name": ({"name": "\ud800"}, "event name holds half a surrogate pair"),
    "a name that is not text": ({"name": 1}, "event name must be text, not int"),
    "an empty id": ({"id": ""}, "event id must have 1 to 255 bytes, this has 0"),
    "a long id": ({"id": "x" * 256}, "this has 256"),
    "U+0000 in an id": ({"id": "\0"}, r"event id holds U\+0000"),
    "half a pair in an id": ({"id": "x\udfff"}, "event id holds half a surrogate pair"),
    "an id that is not text": ({"id": b"x"}, "event id must be text, not bytes"),
    "a negative ts": ({"ts": -1}, "event ts must be milliseconds since 1970"),
    "a ts beyond 63 bits": ({"ts": 2**63}, "event ts must be"),
    "a ts with a fraction": ({"ts": 1.5}, "event ts must be"),
    "a ts that is a truth": ({"ts": True}, "event ts must be"),
}


@pytest.mark.parametrize("name", REFUSED_ARGUMENTS)
def test_a_name_id_or_ts_that_can_not_be_kept_is_refused(client, connection, name):
    arguments, reason = REFUSED_ARGUMENTS[name]
    with pytest.raises(EventError, match=reason):
        client.send(arguments.pop("name", "event"), {}, **arguments)
    assert count(connection, "job_event") == 0


ODD_NAMES = ["x" * 1024, "é" * 512, "a b", "'; --", "%s", "🚀", "\ufffd", "\x7f"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_of_any_other_text_is_kept(client, connection, name):
    client.send(name, {}, id=name[:255].encode()[:255].decode(errors="ignore"))
    assert connection.execute("select name from jobspec.job_event").fetchone() == (name,)


@pytest.mark.parametrize("ts", [0, 1, 2**31, 2**53, 2**63 - 1])
def test_a_ts_to_the_end_of_time_is_kept(client, connection, ts):
    client.send("event", {}, ts=ts)
    assert run_of(connection).event_ts == ts


def test_a_batch_mixes_kinds_of_text_and_sizes_of_numbers(client, connection):
    """An array has elements of one type: enums and subclasses of str are told as what they are."""
    events = [
        Event(Name.EVENT, {"key": 1}, Text("a"), 1),
        Event("event", {"key": 2}, "b", 2**62),
        Event(Text("event"), {"key": 3}, None, None),
    ]
    sent = client.send_many(events)
    assert [len(one.jobs) for one in sent] == [1, 1, 1]
    assert [run.event_id for run in runs(connection)][:2] == ["a", "b"]


def test_an_empty_batch_sends_nothing(client, connection):
    assert client.send_many([]) == []
    assert count(connection, "job_event") == 0


async def test_a_bad_event_among_concurrent_sends_fails_alone(dsn, connection):
    async with AsyncClient(jobs(job={}), dsn) as client:
        sends = [client.send("event", {"n": n if n % 3 else float("nan")}) for n in range(30)]
        results = await asyncio.gather(*sends, return_exceptions=True)
    assert [n for n, one in enumerate(results) if isinstance(one, EventError)] == list(
        range(0, 30, 3)
    )
    assert len(runs(connection)) == 20


async def test_an_event_that_the_database_refuses_fails_alone(dsn, connection):
    """Whatever this code does not foresee: here a rule of the database's own."""
    connection.execute("alter table jobspec.job_event add check (data->>'n' <> '3')")
    async with AsyncClient(jobs(job={}), dsn) as client:
        sends = [client.send("event", {"n": n}) for n in range(8)]
        results = await asyncio.gather(*sends, return_exceptions=True)
    failed = [n for n, one in enumerate(results) if isinstance(one, psycopg.Error)]
    assert failed == [3]
    assert len(runs(connection)) == 7


def test_the_sender_s_recursion_limit_does_not_decide_what_can_be_read(client, connection):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        with pytest.raises(EventError, match="nested too deeply"):
            client.send("event", nested(2_000))
    finally:
        sys.setrecursionlimit(limit)
    assert count(connection, "job_event") == 0
