"""What the engine's tests share: jobs in a line, rows to look at, and bounded waits for a state."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from uuid import uuid4

import sqlalchemy
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import namedtuple_row

import jobspec
from jobspec import Registry
from jobspec_engine import Client, Event, Worker
from jobspec_engine.calls import fetch
from jobspec_engine.rows import Completion, Failure, Suspension
from jobspec_engine.statements import Statements

# Seconds until a state that does not come is a failure.
PATIENCE = float(os.environ.get("JOBSPEC_TEST_PATIENCE", "30"))
PULSE = 0.005  # seconds between two looks
SQL = Statements()

EMAIL = {"idempotency": "event.data.idempotencyKey"}
REFRESH = {
    "debounce": {
        "key": "event.data.installationId + '/' + event.data.repoOwner + '/' + event.data.repoName",
        "period": "2m",
        "timeout": "15m",
    }
}


def job(job_id="job", *, event="event", handler=None, **options):
    """Compile one job, triggered by `event`."""
    return jobs(**{job_id: {"event": event, "handler": handler, **options}})


def jobs(**by_id):
    """Compile several jobs: their options by id."""
    registry = Registry()
    for job_id, options in by_id.items():
        event = options.pop("event", "event")
        handler = options.pop("handler", None) or nothing
        registry.job(id=job_id, triggers=[event], **options)(handler)
    return jobspec.compile(registry)


async def nothing(context):
    """The handler of jobs that never run, or do nothing when they do."""


def send(dsn, compiled, *data, event="event"):
    """Send an event for each of the data, or one, and return what became of them."""
    with Client(compiled, dsn) as client:
        return client.send_many([Event(event, one) for one in data or [{}]])


def runs(connection):
    """Return all runs, in the order they were enqueued."""
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        return cursor.execute("select * from jobspec.job_queue order by id").fetchall()


def run_of(connection):
    """Return the only run there is."""
    (run,) = runs(connection)
    return run


def dead_letters(connection):
    """Return what is known of runs that ended without success, in the order of the runs."""
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        return cursor.execute("select * from jobspec.job_dead_letter order by run_id").fetchall()


def used_keys(connection):
    """Return the idempotency keys that were used: by key, the run and the number of events."""
    rows = connection.execute("select key, run_id, events from jobspec.job_idempotency")
    return {key: (run_id, events) for key, run_id, events in rows}


def count(connection, table):
    """Return how many rows a table of the engine has."""
    return connection.execute(f"select count(*) from jobspec.{table}").fetchone()[0]  # noqa: S608


def claim(connection, *job_ids, limit=100, lease=timedelta(seconds=30), token=None):
    """Claim runs as a worker does, and return them."""
    token = token or uuid4()
    return fetch(connection, SQL.claim(job_ids or ("job",), limit, lease, token, "test"))


def complete(connection, run, token, result="1"):
    """End a claimed run well; return its id if it was held."""
    return fetch(connection, SQL.complete([Completion(run.run_id, token, result)]))


def fail(connection, run, token, delay=timedelta(seconds=15), reason="attempts-used"):
    """End an attempt of a claimed run, for good without a delay; return its id if it was held."""
    return fetch(connection, SQL.fail([Failure(run.run_id, token, delay, reason, "no", "{}")]))


def release(connection, run, token):
    """Give a claimed run back; return its id if it was held."""
    given_back = fetch(connection, SQL.release([Suspension(run.run_id, token)]))
    return [one.run_id for one in given_back]


def sqlalchemy_url(dsn):
    """Return an address as SQLAlchemy takes it."""
    settings = conninfo_to_dict(dsn)
    query = {"host": str(settings["host"]), "port": str(settings["port"])}
    return sqlalchemy.URL.create(
        "postgresql+psycopg",
        username=settings["user"],
        password=settings.get("password"),
        database=settings["dbname"],
        query=query,
    )


def until(condition, what="the awaited state"):
    """Wait until `condition()` is true, and return what it gave."""
    pause, end = threading.Event(), time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not come"
        pause.wait(PULSE)
    return found


async def until_async(condition, what="the awaited state"):
    """Wait, with the event loop running, until `condition()` is true; return what it gave."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not come"
        with suppress(TimeoutError):
            async with asyncio.timeout(PULSE):
                await asyncio.Event().wait()
    return found


def blocked(connection, how_many=1):
    """Tell whether this many sessions of this database wait for a lock."""
    (waiting,) = connection.execute(
        "select count(distinct pid) from pg_locks join pg_stat_activity using (pid)"
        " where datname = current_database() and not granted"
    ).fetchone()
    return waiting >= how_many


class Gate:
    """A handler that says that it was entered, and waits there to be let through."""

    def __init__(self):
        self.entered = asyncio.Queue()
        self.open = asyncio.Event()
        self.left = []

    async def __call__(self, context):
        self.entered.put_nowait(context)
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.left.append("cancelled")
            raise
        self.left.append("let through")
        return context.attempt

    async def next(self):
        """Wait for the next pass and return its context."""
        return await asyncio.wait_for(self.entered.get(), PATIENCE)


def worker(compiled, dsn, **options):
    """Return a worker that looks at the database often, since tests move the time in there."""
    return Worker(compiled, dsn, **{"poll": timedelta(milliseconds=20), **options})


async def run_until_idle(compiled, dsn, **options):
    """Run all that is due, and return when nothing is."""
    async with asyncio.timeout(PATIENCE):
        await worker(compiled, dsn, **options).run(until_idle=True)


@asynccontextmanager
async def working(compiled, dsn, **options):
    """Have a worker at work; it is stopped, and drained, on leaving."""
    at_work = worker(compiled, dsn, **options)
    task = asyncio.create_task(at_work.run())
    try:
        yield at_work
        at_work.stop()
        await asyncio.wait_for(asyncio.shield(task), PATIENCE)
    finally:
        if not task.done():
            at_work.stop(now=True)
            await asyncio.wait([task], timeout=PATIENCE)
            task.cancel()
