"""Whatever a handler does, its run ends or waits for a retry, and the worker goes on."""

from __future__ import annotations

import _thread
import asyncio
import ctypes
import functools
import json
import sys
import threading

import pytest

from enginekit import dead_letters, jobs, run_of, run_until_idle, runs
from jobspec_engine import Client
from jobspec_engine.payload import MAX_BYTES


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class SpeaksOfTheEndError(Exception):
    def __str__(self):
        raise SystemExit(3)


class AnnotatedError(Exception):
    @property
    def __notes__(self):
        raise ValueError("no notes")


class AsyncCallable:
    async def __call__(self, context):
        return context.event.data


class SyncCallable:
    def __call__(self, context):
        return context.event.data


class Awaitable:
    def __init__(self, value):
        self.value = value

    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        return self.value


async def echo(context):
    return context.event.data


async def with_option(option, context):
    return [option, context.event.data]


def sync_with_option(option, context):
    return [option, context.event.data]


def returns_a_coroutine(context):
    return echo(context)


def returns_an_awaitable(context):
    return Awaitable("x")


def raises(error):
    async def handler(context):
        raise error

    return handler


def raises_in_a_thread(error):
    def handler(context):
        raise error

    return handler


def returns(value):
    async def handler(context):
        return value

    return handler


def exits(context):
    sys.exit("a handler is no place for this")


async def cancels_itself(context):
    asyncio.current_task().cancel()
    await asyncio.sleep(0)


async def cancels_itself_and_ends(context):
    asyncio.current_task().cancel()
    return "done"


async def cancelled_group(context):
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.Event().wait()).cancel()
    raise asyncio.CancelledError


async def times_out(context):
    async with asyncio.timeout(0):
        await asyncio.Event().wait()


def ends_its_thread(context):
    _thread.exit()


def orders_its_thread(context):
    """Have the interpreter raise in this thread, as those do who kill one from outside."""
    mine = ctypes.c_ulong(threading.get_ident())
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(mine, ctypes.py_object(SystemExit)) == 1
    for _ in range(1_000_000):  # it comes between two instructions
        pass


def recurses(context):
    return recurses(context)


async def run_one(dsn, handler, **options):
    compiled = jobs(hostile={"handler": handler, **options}, after={"handler": echo})
    with Client(compiled, dsn) as client:
        client.send("event", {"n": 1})
    await run_until_idle(compiled, dsn)


def cycle():
    value = []
    value.append(value)
    return value


FAILURES = {
    "an exception": (raises(ValueError("no")), "ValueError: no"),
    "an exit": (raises(SystemExit(3)), "SystemExit: 3"),
    "an interrupt": (raises(KeyboardInterrupt()), "KeyboardInterrupt"),
    "a generator's exit": (raises(GeneratorExit()), "GeneratorExit"),
    "no memory": (raises(MemoryError()), "MemoryError"),
    "no memory in a thread": (raises_in_a_thread(MemoryError()), "MemoryError"),
    "a generator's exit in a thread": (raises_in_a_thread(GeneratorExit()), "GeneratorExit"),
    "the end of its thread": (ends_its_thread, "SystemExit"),
    "an order to its thread": (orders_its_thread, "SystemExit"),
    "a stop iteration": (raises(StopIteration(1)), "StopIteration"),
    "a stop async iteration": (raises(StopAsyncIteration()), "StopAsyncIteration"),
    "a cancellation of its own": (raises(asyncio.CancelledError()), "CancelledError"),
    "an exception in a thread": (raises_in_a_thread(ValueError("no")), "ValueError: no"),
    "an exit in a thread": (exits, "SystemExit: a handler is no place for this"),
    "an interrupt in a thread": (raises_in_a_thread(KeyboardInterrupt()), "KeyboardInterrupt"),
    "a stop iteration in a thread": (raises_in_a_thread(StopIteration(1)), "StopIteration"),
    "a cancellation in a thread": (
        raises_in_a_thread(asyncio.CancelledError()),
        "CancelledError",
    ),
    "cancelling its own task": (cancels_itself, "CancelledError"),
    "cancelling its own task at the end": (cancels_itself_and_ends, "CancelledError"),
    "a cancelled group": (cancelled_group, "CancelledError"),
    "a timeout": (times_out, "TimeoutError"),
    "no end of calls": (recurses, "RecursionError"),
    "an error without words": (raises(UnspeakableError()), "UnspeakableError"),
    "an error that exits when asked": (raises(SpeaksOfTheEndError()), "SpeaksOfTheEndError"),
    "an error with hostile notes": (raises(AnnotatedError("odd")), "AnnotatedError"),
    "U+0000 in a message": (raises(ValueError("a\0b")), "ValueError: a␀b"),
    "half a pair in a message": (raises(ValueError("a\ud800b")), "ValueError: a?b"),
    "a long message": (raises(ValueError("x" * 1_000_000)), "ValueError: xxx"),
    "a group of errors": (raises(ExceptionGroup("two", [OSError(1), OSError(2)])), "two"),
    "the wrong signature": (lambda: None, "TypeError"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_handler_that_fails_fails_its_run_alone(dsn, connection, name):
    handler, message = FAILURES[name]
    await run_one(dsn, handler, retries=0)
    failed, after = runs(connection)
    assert (failed.state, failed.attempt, after.state) == ("failed", 1, "completed")
    (dead,) = dead_letters(connection)
    assert (dead.run_id, dead.reason) == (failed.id, "attempts-used")
    assert message in dead.message
    assert len(dead.message) <= 2_000
    (entry,) = failed.errors
    assert entry["attempt"] == 1
    assert entry["traceback"]


@pytest.mark.parametrize("name", FAILURES)
async def test_a_handler_that_fails_waits_for_its_retry(dsn, connection, name):
    await run_one(dsn, FAILURES[name][0], retries=1)
    failed, after = runs(connection)
    assert (failed.state, failed.attempt, failed.lease_token) == ("pending", 1, None)
    assert after.state == "completed"
    assert not dead_letters(connection)


NOT_JSON = {
    "an object": object(),
    "a set": {1},
    "bytes": b"x",
    "not a number": float("nan"),
    "infinity": [float("inf")],
    "a key that is not text": {1: 2},
    "a cycle": cycle(),
    "a coroutine function": echo,
    "more than can be kept": "x" * MAX_BYTES,
}


@pytest.mark.parametrize("name", NOT_JSON)
async def test_a_result_that_is_not_json_ends_the_run_without_a_retry(dsn, connection, name):
    """Its work was done, and would be done again."""
    await run_one(dsn, returns(NOT_JSON[name]), retries=4)
    failed, after = runs(connection)
    assert (failed.state, after.state) == ("failed", "completed")
    (dead,) = dead_letters(connection)
    assert dead.reason == "not-retriable"
    assert "ResultError: the handler's result" in dead.message


RESULTS = {
    "an async function": (echo, {"n": 1}),
    "an object with an async __call__": (AsyncCallable(), {"n": 1}),
    "an object with a __call__": (SyncCallable(), {"n": 1}),
    "a bound method": (AsyncCallable().__call__, {"n": 1}),
    "a partial of an async function": (functools.partial(with_option, 7), [7, {"n": 1}]),
    "a partial of a function": (functools.partial(sync_with_option, 7), [7, {"n": 1}]),
    "a function": (lambda context: context.event.data, {"n": 1}),
    "a function that returns a coroutine": (returns_a_coroutine, {"n": 1}),
    "a function that returns an awaitable": (returns_an_awaitable, "x"),
    "nothing": (returns(None), None),
    "U+0000": (returns("a\0b"), "a\0b"),
    "half a surrogate pair": (returns("\ud800"), "\ud800"),
    "an integer of many digits": (returns(10**400), 10**400),
    "a tuple": (returns((1, 2)), [1, 2]),
}


@pytest.mark.parametrize("name", RESULTS)
async def test_what_a_handler_returns_is_kept(dsn, connection, name):
    handler, result = RESULTS[name]
    compiled = jobs(hostile={"handler": handler})
    with Client(compiled, dsn) as client:
        client.send("event", {"n": 1})
    await run_until_idle(compiled, dsn)
    assert run_of(connection).state == "completed"
    (kept,) = connection.execute("select result::text from jobspec.job_queue").fetchone()
    assert json.loads(kept) == result
