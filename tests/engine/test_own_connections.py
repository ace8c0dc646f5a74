"""The reader of a connection of our own in the event loop: one for all answers, none beyond it."""

from __future__ import annotations

import asyncio
import gc
import weakref

import psycopg
import pytest

from databases import wait_until_blocked
from jobspec_engine.calls import Call, fetch_async
from jobspec_engine.own_connections import OwnAsyncConnection

ECHO = b"select %(value)s"
BLOCKED = Call(b"select pg_advisory_lock(1)", {}, tuple)


class Readers:
    """Notes which lines the loop gets readers of, and which it has now."""

    def __init__(self, loop, monkeypatch):
        self.added = []
        self.now = set()
        self.quiet = asyncio.Event()
        self._add, self._remove = loop.add_reader, loop.remove_reader
        monkeypatch.setattr(loop, "add_reader", self.add)
        monkeypatch.setattr(loop, "remove_reader", self.remove)

    def add(self, line, callback, *args):
        self.added.append(line)
        self.now.add(line)
        self.quiet.clear()
        self._add(line, callback, *args)

    def remove(self, line):
        self.now.discard(line)
        self.quiet.set()
        return self._remove(line)


@pytest.fixture
async def readers(monkeypatch):
    return Readers(asyncio.get_running_loop(), monkeypatch)


@pytest.fixture
async def own(empty_dsn):
    async with await OwnAsyncConnection.connect(empty_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def other(empty_dsn):
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        yield connection


async def tell(own, value="told"):
    return await fetch_async(own, Call(ECHO, {"value": value}, tuple))


async def one_blocked(own, other):
    """Return a task whose statement waits for a lock of the other connection's."""
    other.execute("select pg_advisory_lock(1)")
    blocked = asyncio.create_task(fetch_async(own, BLOCKED))
    await asyncio.to_thread(wait_until_blocked, other)
    return blocked


async def test_one_reader_serves_all_answers(own, readers):
    for _ in range(5):
        assert await tell(own) == [("told",)]
    assert readers.added == [own.fileno()]


async def test_a_closed_connection_leaves_no_reader(own, readers):
    await tell(own)
    await own.close()
    assert readers.now == set()


async def test_a_connection_that_nobody_closed_is_closed_when_it_goes(empty_dsn, readers):
    own = await OwnAsyncConnection.connect(empty_dsn, autocommit=True)
    await tell(own)
    gone = weakref.ref(own)
    del own
    with pytest.warns(ResourceWarning, match="deleted while still open"):
        gc.collect()
    assert gone() is None
    assert readers.now == set()


async def test_a_statement_that_fails_leaves_the_connection_fit(own):
    with pytest.raises(psycopg.errors.DivisionByZero):
        await fetch_async(own, Call(b"select 1 / 0", {}, tuple))
    assert await tell(own) == [("told",)]


async def test_a_line_that_breaks_leaves_no_reader_for_the_one_that_gets_its_number(
    own, other, readers, empty_dsn
):
    blocked = await one_blocked(own, other)
    line = own.fileno()
    other.execute("select pg_terminate_backend(%s, 10000)", [own.info.backend_pid])
    with pytest.raises(psycopg.OperationalError):
        await blocked
    assert readers.now == set()
    async with await OwnAsyncConnection.connect(empty_dsn, autocommit=True) as next_one:
        assert next_one.fileno() == line
        assert await tell(next_one) == [("told",)]


async def test_a_line_that_breaks_while_a_statement_is_sent_leaves_no_reader(own, readers):
    def breaks():
        own.pgconn.finish()  # as libpq does where it sees the end of a line that it writes to
        raise psycopg.OperationalError("the line broke")
        yield  # what makes it a generator

    await tell(own)
    with pytest.raises(psycopg.OperationalError):
        await own.wait(breaks())
    assert readers.now == set()


async def test_what_comes_while_nobody_waits_takes_the_reader_away(own, other, readers):
    await own.execute("listen news")
    other.execute("notify news")
    await asyncio.wait_for(readers.quiet.wait(), 60)
    assert await tell(own) == [("told",)]


async def test_a_line_that_ends_while_nobody_waits_takes_the_reader_away(own, other, readers):
    await tell(own)
    other.execute("select pg_terminate_backend(%s, 10000)", [own.info.backend_pid])
    await asyncio.wait_for(readers.quiet.wait(), 60)
    with pytest.raises(psycopg.OperationalError):
        await tell(own)
    assert readers.now == set()


def test_a_statement_is_read_in_the_loop_that_asks_and_in_no_other(empty_dsn):
    with asyncio.Runner() as first, asyncio.Runner() as second:
        own = first.run(OwnAsyncConnection.connect(empty_dsn, autocommit=True))
        assert first.run(tell(own)) == [("told",)]
        assert second.run(tell(own)) == [("told",)]
        assert not first.get_loop().remove_reader(own.fileno())
        assert first.run(tell(own)) == [("told",)]
        first.run(own.close())


async def test_a_statement_may_be_larger_than_its_line_takes_at_once(own):
    own.prepare_threshold = 0  # it is prepared first, which is answered
    text = "x" * (8 << 20)
    assert await tell(own, text) == [(text,)]
    assert await tell(own) == [("told",)]


async def test_a_statement_whose_caller_is_cancelled_is_ended(own, other):
    blocked = await one_blocked(own, other)
    blocked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await blocked
    assert await tell(own) == [("told",)]


async def test_a_connection_is_closed_whose_statement_can_not_be_ended(
    own, other, readers, monkeypatch
):
    async def fail(**_):
        raise psycopg.OperationalError("no way there")

    monkeypatch.setattr(own, "cancel_safe", fail)
    blocked = await one_blocked(own, other)
    blocked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await blocked
    assert own.closed
    assert readers.now == set()


async def test_a_caller_who_is_cancelled_twice_does_not_wait_for_the_end(own, other, monkeypatch):
    ending = asyncio.Event()

    async def never(**_):
        ending.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(own, "cancel_safe", never)
    blocked = await one_blocked(own, other)
    blocked.cancel()
    await ending.wait()
    blocked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await blocked
    assert own.closed
