"""Processes that work on one job and die, or freeze, at any point of it.

A point is a place where a process may be lost and leave something half done: before and after each
statement about runs and steps, before and after each await of the handler that gives way. They are
found by instruments, not listed: by a statement's function and by the coroutine of the handler.

This module is also the program of a mother process. It imports everything once, and forks a worker
for each line that it reads: `DSN POINT SIGNAL`. It prints what became of that worker.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import types
from datetime import timedelta

from jobspec_engine import Worker, persistence
from jobspec_engine.statements import Statements

LEASE = timedelta(seconds=1)

# The statements of a run's life. The others look at the queue, or renew leases in their own thread.
WATCHED = (
    *("claim", "memos", "remember", "remember_one", "reopen", "invoke"),
    *("release", "complete", "fail"),
)


class Points:
    """Counts the points that are passed, and ends or freezes the process at one of them."""

    def __init__(self, at, sent, told):
        self._at = at
        self._sent = sent
        self._told = told
        self._passed = 0

    def __call__(self, label):
        self._told.write(f"{label}\n")
        self._passed += 1
        if self._passed == self._at:
            self._told.flush()
            os.kill(os.getpid(), self._sent)

    def watch_statements(self):
        """Count each statement twice: before it is executed and when its rows are here."""
        names = {query: name for name, query in Statements()._queries.items() if name in WATCHED}
        execute = persistence.fetch_async

        async def watched(connection, call):
            name = names.get(call.query)
            if name is None:
                return await execute(connection, call)
            if name != "claim":  # most claims find nothing, and then nothing can be lost
                self(f"before {name}")
            rows = await execute(connection, call)
            if name != "claim" or rows:
                self(f"after {name}")
            return rows

        persistence.fetch_async = watched

    def watch_awaits(self, handler):
        """Return a handler whose awaits count twice: when it gives way and when it goes on."""

        async def watched(context):
            return await self._driven(handler(context))

        return watched

    @types.coroutine
    def _driven(self, coroutine):
        resume, value = coroutine.send, None
        while True:
            try:
                awaited = resume(value)
            except StopIteration as ended:
                return ended.value
            self(f"await {_where(coroutine)}")
            try:
                value = yield awaited
                resume = coroutine.send
            except BaseException as error:  # noqa: BLE001  the coroutine takes it
                resume, value = coroutine.throw, error
            self(f"resume {_where(coroutine)}")


def _where(coroutine):
    """Tell which of the example's or the engine's functions a coroutine waits in."""
    name = "?"
    while hasattr(coroutine, "cr_await"):
        if (
            "jobspec" in coroutine.cr_code.co_filename
            or "examples" in coroutine.cr_code.co_filename
        ):
            name = coroutine.cr_code.co_name
        coroutine = coroutine.cr_await
    return name


def work(dsn, at, sent, told):
    """Run all that is due, but for what happens at a point; tell the points that are passed."""
    import jobspec
    from examples.supervisor.supervise import supervise

    points = Points(at, sent, told)
    points.watch_statements()
    registry = jobspec.Registry()
    job = registry.job(id="container.supervise", triggers=["container.requested"], retries=0)
    job(points.watch_awaits(supervise))
    worker = Worker(jobspec.compile(registry), dsn, lease=LEASE, max_refunds=9)
    asyncio.run(worker.run(until_idle=True))


def _child(dsn, at, sent):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        with open(write, "w") as told:  # noqa: PTH123  it is a pipe
            work(dsn, at, sent, told)
        os._exit(0)
    os.close(write)
    return pid, read


def _say(what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main():
    """Fork a worker for each line that is read, and print what became of it."""
    logging.disable()
    frozen = {}
    _say("ready")
    for line in sys.stdin:
        dsn, at, sent = json.loads(line)
        pid, read = _child(dsn, at, sent) if isinstance(dsn, str) else frozen.pop(at)
        _, status = os.waitpid(pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            frozen[pid] = pid, read
            _say(["frozen", pid])
            continue
        with open(read) as told:  # noqa: PTH123  it is a pipe
            passed = told.read().splitlines()
        dead = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        _say(["killed" if dead else "ended", passed])


if __name__ == "__main__":
    main()
