"""Statements that write memos: by whoever holds the run, and of steps that are as they were."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from enginekit import claim, job
from jobspec_engine import Client
from jobspec_engine.calls import fetch
from jobspec_engine.memos import StepCall, StepKey
from jobspec_engine.rows import Held
from jobspec_engine.step_statements import MemoWrite, StepStatements

STEPS = StepStatements()
WORK = StepCall(StepKey("", "work", 1), "run", 1)
WAIT = StepCall(StepKey("", "answer", 1), "wait", 1)


@pytest.fixture
def held(dsn, clock, connection):
    """A run that is held."""
    with Client(job(), dsn) as client:
        client.send("event", {})
    (run,) = claim(connection, token=(token := uuid4()))
    return Held(run.run_id, token)


def memo(connection):
    return connection.execute("select state, result ->> 'id' from jobspec.job_step").fetchone()


def keep(connection, held, call, state, **columns):
    write = MemoWrite.of(held, call, state)._replace(**columns)
    assert fetch(connection, STEPS.remember([write]))


def test_a_step_that_failed_is_tried_again_by_whoever_holds_its_run(held, connection):
    keep(connection, held, WORK, "failed", error='"no"', failures=1)
    assert fetch(connection, STEPS.reopen(held._replace(lease_token=uuid4()), WORK.key)) == []
    assert memo(connection) == ("failed", None)
    assert fetch(connection, STEPS.reopen(held, WORK.key)) == [1]
    assert memo(connection) == ("waiting", None)


def test_a_step_that_succeeded_is_not_tried_again(held, connection):
    keep(connection, held, WORK, "done", result='{"id": "kept"}')
    assert fetch(connection, STEPS.reopen(held, WORK.key)) == []
    assert memo(connection) == ("done", "kept")


def test_a_wait_that_its_event_has_settled_is_not_settled_by_an_earlier_one(
    dsn, held, clock, connection
):
    with Client(job(), dsn) as client:
        client.send("answer", {}, id="before")
        clock.advance(1)
        keep(connection, held, WAIT, "waiting", delay=timedelta(hours=1), event_name="answer")
        client.send("answer", {}, id="after")
    assert memo(connection) == ("done", "after")
    (kept,) = fetch(connection, STEPS.look_back(held, WAIT.key, None, []))
    assert kept.memo.state == "done"
    assert memo(connection) == ("done", "after")


def test_a_memo_alone_settles_as_it_does_among_many(held):
    write = MemoWrite.of(held, WORK, "done")
    many, one = STEPS.remember([write]).query, STEPS.remember_one(write).query
    assert one.partition(b"\non conflict")[1:] == many.partition(b"\non conflict")[1:]
    assert b"on conflict" in one
