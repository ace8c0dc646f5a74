"""Every verb with its line cut before and behind every statement: nothing is lost or doubled."""

from __future__ import annotations

import os
from collections import Counter
from uuid import uuid4

import psycopg
import pytest
from tenacity.wait import wait_none

from enginekit import until
from jobspec_engine import Client, persistence
from jobspec_engine.drift import drift
from jobspec_engine.migrate import migrate
from jobspec_engine.rows import Completion
from jobspec_engine.statements import fetch
from proof.crash_verbs import VERBS, again
from proof.cutting import BEFORE, UNANSWERED, Cutter
from proof.pair import LEASE, MAX_REFUNDS, STEPS, compiled, forget
from proof.report import attack

MOST_POINTS = 200  # a verb with more of them never ends

# All that must be the same, wherever the line broke; an event whose id is drawn goes by its name.
# Calls of `add_job` have no id: a second one with the same key joins the first, and makes another
# event.
SETTLED = """
    with job_event as (
        select case when id ~ '^[0-9a-f]{8}-' then name else id end as alias, * from job_event
    )
    select 'run', job_id, alias, state,
        case name when 'jobspec/job.added' then 1 else events end, replayed_as is not null
    from job_queue join job_event on job_event.id = event_id
    union all
    select 'event', alias, name, '', 0, false from job_event where name <> 'jobspec/job.added'
    union all
    select 'key', job_id, key, '', events, expires_at is null from job_idempotency
    union all
    select 'dead letter', job_id, event_id, reason, 0, false from job_dead_letter
    union all
    select 'outcome', job_id, alias, outcome, 0, false
    from job_dispatch join job_event on job_event.id = event_id where name <> 'jobspec/job.added'
    union all
    select 'memo', name, kind, state, number, result is null from job_step
    union all
    select 'schedule', job_id, '', '', 0, false from job_cron
    union all
    select 'pause', job_id, '', '', 0, false from job_pause
"""

# Sessions that the server has not yet found to be lost hold their locks until then.
AT_WORK = """
    select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
"""


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
        before, act = VERBS[verb]
        forget(self.connection)
        self.clock.set(self.clock.START)
        self._point = (0, BEFORE)
        for prepare in before:
            prepare(self)
        self._point = (at, when)
        act(self)
        has_cut = self.line.disarm()
        self.recover()
        return has_cut, Counter(self.connection.execute(SETTLED).fetchall())

    def recover(self):
        """Let leases run out, and another worker do what is left, as often as it takes."""
        until(
            lambda: self.connection.execute(AT_WORK).fetchone() == (0,), "the end of all sessions"
        )
        for _ in range(4):
            self.clock.advance(10 * LEASE)
            fetch(self.connection, STEPS.reclaim(MAX_REFUNDS, 1000))
            token = uuid4()
            job_ids = [*self.jobs, "stepped"]
            rows = fetch(self.connection, STEPS.claim(job_ids, 1000, LEASE, token, "w"))
            ended = [Completion(row.run_id, token, "1") for row in rows]
            fetch(self.connection, STEPS.complete(ended))


def unfinished(settled):
    """Return what recovery did not bring to an end, where nothing is paused."""
    paused = {row[1] for row in settled if row[0] == "pause"}
    return [
        row
        for row in settled
        if row[0] == "run" and row[3] in ("pending", "running") and row[1] not in paused
    ]


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
        has_cut, settled = passed_through(at, when)
        if not has_cut:
            return
        yield f"{when} statement {at}", settled
    raise AssertionError("there is no end of statements")


@pytest.mark.parametrize("verb", VERBS)
def test_a_line_that_breaks_at_any_statement_loses_and_doubles_nothing(world, verb):
    _, whole = world.passed_through(verb, 0, BEFORE)
    assert not unfinished(whole)
    with attack(f"crash points: {verb}") as row:
        for when in (BEFORE, UNANSWERED):
            for point, settled in points(when, lambda *cut: world.passed_through(verb, *cut)):
                row.cases += 1
                row.lost += (whole - settled).total()
                row.doubled += (settled - whole).total()
                row.stuck += len(unfinished(settled))
                assert settled == whole, (point, whole - settled, settled - whole)
        assert row.cases >= 2


def test_a_migration_that_breaks_at_any_statement_is_made_whole_by_the_next(databases):
    def migrated(at, when):
        name, dsn = databases.create()
        with Cutter(dsn) as line:
            line.arm(at, when)
            again(lambda: migrate(line.dsn))
            has_cut = line.disarm()
        found = drift(dsn)
        databases.drop(name)
        return has_cut, found

    stride = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 8  # each takes a second
    with attack("crash points: migrate") as row:
        for when in (BEFORE, UNANSWERED):
            for point, found in points(when, migrated, stride):
                row.cases += 1
                row.stuck += bool(found)
                assert not found, (point, found)
        assert row.cases >= 2
