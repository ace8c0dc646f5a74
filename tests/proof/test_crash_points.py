"""Every verb with its line cut before, in and behind every statement: nothing lost or doubled."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest
from tenacity.wait import wait_none

from enginekit import blocked, until
from jobspec_engine import Client, persistence
from jobspec_engine.drift import drift
from jobspec_engine.migrate import migrate
from proof.crash_verbs import VERBS, again
from proof.crash_workers import live
from proof.cutting import BEFORE, UNANSWERED, UNDER_WAY, Cutter
from proof.pair import compiled, forget
from proof.recovery import others_ended, recover, settled, unfinished
from proof.report import attack

MOST_POINTS = 200  # a verb with more of them never ends

# Of what takes long, a migration and the life of a worker, all points or some.
STRIDE = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 8


class World:
    """A database, a line to it that may break, and a client whose line does not."""

    def __init__(self, dsn, connection, clock, line, client):
        self.dsn, self.connection, self.clock, self.line = dsn, connection, clock, line
        self.client = client
        self.jobs = client._jobs
        self._point = (0, BEFORE)

    def arm(self):
        self.line.arm(*self._point)

    def run_ids(self):
        return [id_ for (id_,) in self.connection.execute("select id from job_queue order by id")]

    def passed_through(self, verb, at, when):
        """Do a verb with the line cut at a point; return whether it was, and what is settled."""
        before, act, afterwards = VERBS[verb]
        forget(self.connection)
        self.clock.set(self.clock.START)
        self._point = (0, BEFORE)
        for prepare in before:
            prepare(self)
        self._point = (at, when)
        with locks_held_for(self):
            act(self)
        has_cut = self.line.disarm()
        others_ended(self.connection)
        for follow in afterwards:
            follow(self)
        recover(self.connection, self.clock, [*self.jobs, "stepped", "tick"])
        return has_cut, settled(self.connection)


@contextmanager
def locks_held_for(world):
    """Have a statement that is given up under way wait until its second try waits or has passed."""
    over = threading.Event()

    def let_go(holder):
        until(
            lambda: over.is_set() or world.line.is_done.is_set() or blocked(world.connection, 2),
            "the second try",
        )
        holder.close()

    def delay():
        holder = psycopg.connect(world.dsn)
        holder.execute("select from jobspec.job_queue for update skip locked")
        letting_go.append(threads.submit(let_go, holder))

    letting_go = []
    world.line.delay = delay
    with ThreadPoolExecutor(1) as threads:
        try:
            yield
        finally:
            over.set()
    for one in letting_go:
        one.result()


@pytest.fixture
def world(dsn, clock, monkeypatch):
    monkeypatch.setattr(persistence, "wait_random_exponential", lambda **_: wait_none())
    with (
        psycopg.connect(dsn, autocommit=True, options="-c search_path=jobspec") as connection,
        Cutter(dsn) as line,
        Client(compiled(), dsn) as client,
    ):
        yield World(dsn, connection, clock, line, client)


def points(when, passed_through, stride=1):
    """Yield what came of each point there is, until one is not reached any more."""
    for at in range(1, MOST_POINTS, stride):
        has_cut, found = passed_through(at, when)
        if not has_cut:
            return
        yield f"{when} statement {at}", found
    raise AssertionError("there is no end of statements")


@pytest.fixture(scope="module")
def row():
    with attack("a cut at every statement of every verb") as row:
        yield row


@pytest.mark.parametrize("verb", VERBS)
def test_a_line_that_breaks_at_any_statement_loses_and_doubles_nothing(world, row, verb):
    _, whole = world.passed_through(verb, 0, BEFORE)
    assert not unfinished(whole)
    for when in (BEFORE, UNDER_WAY, UNANSWERED):
        at = None
        passed_through = partial(world.passed_through, verb)
        for at, found in points(when, passed_through, STRIDE if VERBS[verb][1] is live else 1):
            row.cases += 1
            row.lost += (whole - found).total()
            row.doubled += (found - whole).total()
            row.stuck += len(unfinished(found))
            assert found == whole, (at, whole - found, found - whole)
        assert at, "no statement was cut"


def test_a_migration_that_breaks_at_any_statement_is_made_whole_by_the_next(databases, row):
    def migrated(at, when):
        name, dsn = databases.create()
        with Cutter(dsn) as line:
            line.arm(at, when)
            again(lambda: migrate(line.dsn))
            has_cut = line.disarm()
        found = drift(dsn)
        databases.drop(name)
        return has_cut, found

    for when in (BEFORE, UNDER_WAY, UNANSWERED):
        at = None
        for at, found in points(when, migrated, STRIDE):
            row.cases += 1
            row.stuck += bool(found)
            assert not found, (at, found)
        assert at, "no statement was cut"
