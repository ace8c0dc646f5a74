"""A line to Postgres that breaks at a chosen statement: before it, under way, or unanswered.

It stands between a client and the server, reads what both say, and counts statements by the
messages that ask the server for an answer. So they are found, whoever sends them.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from psycopg.conninfo import conninfo_to_dict, make_conninfo

BEFORE, UNDER_WAY, UNANSWERED = "before", "under way", "unanswered"

# A simple query, and the end of an extended one: the server answers each with one ReadyForQuery.
_ASKS = b"QS"
_READY = b"Z"


class Cutter:
    """A proxy to a server. Lines are whole until it is armed, and after the one that it broke.

    Before it breaks one while the server is at a statement it calls `delay`, which may see to it
    that the server is at it for long.
    """

    def __init__(self, dsn):
        self._server = conninfo_to_dict(dsn)
        self._dsn = dsn
        self._at, self._when = 0, BEFORE
        self.passed = 0
        self.delay = lambda: None
        self.is_done = threading.Event()  # the statement in which the line broke
        self._is_down = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks = set()

    def __enter__(self):
        self._thread.start()
        listening = asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._listener = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        port = self._listener.sockets[0].getsockname()[1]
        plain = {"sslmode": "disable", "gssencmode": "disable"}
        self.dsn = make_conninfo(self._dsn, host="127.0.0.1", port=port, **plain)
        return self

    def __exit__(self, *exc_info):
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def arm(self, at, when):
        """Break the line at the statement of this number from now, counted over all lines."""
        self.passed, self._at, self._when = 0, at, when
        self.is_done.clear()

    def disarm(self):
        """Break no line from now on; return whether one was broken."""
        has_cut = 0 < self._at <= self.passed
        self._at = 0
        return has_cut

    def go_down(self):
        """Break all lines, and let nobody through until it is up again."""
        self._is_down = True
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result()

    def go_up(self):
        self._is_down = False

    async def _close(self):
        self._listener.close()
        await self._hang_up()

    async def _hang_up(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader, writer):
        if self._is_down:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        host, port = self._server["host"], self._server["port"]
        connecting = (
            asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
            if host.startswith("/")
            else asyncio.open_connection(host, port)
        )
        server_reader, server_writer = await connecting
        line = _Line(self, (reader, writer), (server_reader, server_writer))
        with suppress(asyncio.CancelledError):
            await line.carry()

    def breaks(self):
        """Count a statement; return how the line breaks at it, None: it does not."""
        self.passed += 1
        return self._when if self.passed == self._at else None


class _Line:
    def __init__(self, cutter, client, server):
        self._cutter = cutter
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._swallows = self._is_given_up = False

    async def carry(self):
        """Carry messages both ways until one side hangs up or the line breaks."""
        pumps = [asyncio.create_task(self._ask()), asyncio.create_task(self._answer())]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            if self._is_given_up:  # the server has not noticed
                await asyncio.wait(pumps)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for end in (self._to_client, self._to_server):
                end.transport.abort()

    async def _ask(self):
        size = await self._from_client.readexactly(4)  # the first message has no type
        rest = await self._from_client.readexactly(int.from_bytes(size) - 4)
        self._to_server.write(size + rest)
        held_back = b""
        while True:
            kind, message = await _message(self._from_client)
            held_back += message
            if kind in b"PBDEC":  # a part of a statement: nothing of one that is cut off before
                continue
            how = self._cutter.breaks() if kind in _ASKS else None
            if how == BEFORE:
                return
            self._swallows = how is not None
            if how == UNDER_WAY:
                self._cutter.delay()
            self._to_server.write(held_back)
            await self._to_server.drain()
            held_back = b""
            if how == UNDER_WAY:
                self._is_given_up = True
                self._to_client.transport.abort()
                return

    async def _answer(self):
        while True:
            kind, message = await _message(self._from_server)
            if not self._swallows:
                self._to_client.write(message)
                await self._to_client.drain()
            elif kind == _READY:
                self._cutter.is_done.set()
                return


async def _message(reader):
    """Read one message: its kind, and all of it."""
    head = await reader.readexactly(5)
    return head[:1], head + await reader.readexactly(int.from_bytes(head[1:]) - 4)
