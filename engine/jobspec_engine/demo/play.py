"""What the demo does: send from racing senders, move the clock, run, and tell what happened."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import jobspec
from jobspec_engine.async_client import AsyncClient
from jobspec_engine.calls import fetch
from jobspec_engine.migrate import migrate
from jobspec_engine.statements import Statements
from jobspec_engine.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from datetime import datetime

    from jobspec import CompiledJobs
    from jobspec_engine.events import Dispatched, Sent
    from jobspec_engine.rows import RunRow

# A schema of the demo's own, made at its start and dropped at its end.
SCHEMA = "jobspec_demo"
_LOCK = 0x6A6F62737065  # an advisory lock's number: "jobspe"
SENDERS = 16
PUSHES = 50

_EMAIL = {"idempotencyKey": "welcome-42", "to": "ada@example.com"}
_REPOSITORY = {"installationId": "48151623", "repoOwner": "acme", "repoName": "web"}
# Pushes carry their own time, so that the last one is known whichever sender is the first.
_FIRST_PUSH_TS = 1_767_225_600_000


@dataclass(frozen=True, slots=True)
class Played:
    """What the demo saw: what became of its events, and the runs once all is done."""

    outcomes: tuple[tuple[Dispatched, int], ...]
    due: datetime
    runs: tuple[RunRow, ...]


def play(dsn: str) -> Played:
    """Play the demo in a schema of its own, which is gone afterwards."""
    jobs = jobspec.compile(files("jobspec_engine.demo").joinpath("jobs.yaml").read_text())
    with _schema(dsn):
        sent = asyncio.run(_race(jobs, dsn))
        due = max(job.run_at for one in sent for job in one.jobs if job.run_at is not None)
        asyncio.run(Worker(jobs, at(dsn, due), schema=SCHEMA).run(until_idle=True))
        with psycopg.connect(dsn, autocommit=True) as connection:
            runs = fetch(connection, Statements(SCHEMA).runs(None, None, 100))
    return Played(_counted(sent), due, tuple(reversed(runs)))


def at(dsn: str, moment: datetime) -> str:
    """Return a DSN whose sessions take `moment` for the engine's time."""
    options = conninfo_to_dict(dsn).get("options") or ""
    return make_conninfo(dsn, options=f"{options} -c jobspec.now={moment.isoformat()}".strip())


@contextmanager
def _schema(dsn: str) -> Generator[None]:
    """Make the demo's schema, whatever an interrupted demo left of it, and drop it at the end.

    A second demo of the same database waits for the first one's end.
    """
    drop = sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(SCHEMA))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("set client_min_messages = warning")
        connection.execute("select pg_catalog.pg_advisory_lock(%s)", [_LOCK])
        connection.execute(drop)
        migrate(dsn, schema=SCHEMA)
        try:
            yield
        finally:
            connection.execute(drop)


async def _race(jobs: CompiledJobs, dsn: str) -> list[Sent]:
    """Send the same email twice and a burst of pushes, each sender on a connection of its own."""
    async with AsyncExitStack() as opened:
        senders = [
            await opened.enter_async_context(
                AsyncClient(jobs, dsn, schema=SCHEMA, max_connections=1)
            )
            for _ in range(SENDERS)
        ]
        emails = (sender.send("email.send", _EMAIL) for sender in senders[:2])
        pushes = (
            senders[number % SENDERS].send(
                "github/push",
                {**_REPOSITORY, "commit": f"push {number + 1}"},
                ts=_FIRST_PUSH_TS + number,
            )
            for number in range(PUSHES)
        )
        return [*await asyncio.gather(*emails), *await asyncio.gather(*pushes)]


def _counted(sent: Sequence[Sent]) -> tuple[tuple[Dispatched, int], ...]:
    """Count events by job and what became of them, in the order of the runs they belong to."""
    told = Counter(replace(job, run_at=None) for one in sent for job in one.jobs)
    return tuple(sorted(told.items(), key=lambda item: _by_run(item[0])))


def _by_run(told: Dispatched) -> tuple[int, bool]:
    return told.run_id or 0, told.outcome != "enqueued"
