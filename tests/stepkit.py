"""What the tests of steps share: runs of some passes, their memos, work that notes its calls."""

from __future__ import annotations

from datetime import timedelta

from enginekit import job, run_until_idle
from jobspec_engine import Client

LONG = timedelta(minutes=5)
SHORT = timedelta(milliseconds=10)


def send(dsn, compiled, data=None):
    with Client(compiled, dsn) as client:
        return client.send("event", data or {}).jobs[0].run_id


async def run(dsn, handler, clock=None, *, passes=1, **options):
    """Send an event and run its handler for some passes, five minutes apart."""
    compiled = job(handler=handler, **options)
    send(dsn, compiled)
    for number in range(passes):
        if number:
            clock.advance(LONG)
        await run_until_idle(compiled, dsn)


def memos(connection):
    return connection.execute(
        "select task, name, number, kind, state from jobspec.job_step order by revision"
    ).fetchall()


class Work:
    """A function for steps that notes what it was called with."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.calls = []

    async def __call__(self, value=None):
        self.calls.append(value)
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
        return value
