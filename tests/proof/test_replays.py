"""Replays that meet each other, and retention: each dead run goes on once or is gone, and told."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import psycopg
import pytest

from databases import together
from enginekit import jobs
from jobspec_engine import Client, DeadLetters, Event, replay
from jobspec_engine.calls import drive, fetch
from jobspec_engine.retention import Retention, prune
from jobspec_engine.rows import Failure
from proof.pair import LEASE, STEPS, UPKEEP
from proof.report import attack

DEAD, CHUNK = 300, 20
TOKEN = UUID(int=1)
RATE = 50
AGE = timedelta(days=1)
ROUNDS = 3
REPLAYS = """
    select substring(event_id from '[0-9]+$')::bigint, id
    from jobspec.job_queue where event_id like 'jobspec/replay/%'
"""


@pytest.fixture
def row():
    with attack("replays that meet each other, and retention") as row:
        yield row


@pytest.fixture
def client(dsn, monkeypatch):
    monkeypatch.setattr(replay, "_CHUNK", CHUNK)
    key = {"idempotency": {"key": "event.data.n", "window": "while-active"}}
    with Client(jobs(job=key), dsn) as client:
        yield client


def graveyard(connection, client):
    """Have many runs die, and those that wait; return them."""
    sent = client.send_many([Event("event", {"n": n}) for n in range(DEAD)])
    claimed = fetch(connection, STEPS.claim(["job"], 1000, LEASE, TOKEN, "w"))
    failures = [Failure(one.run_id, TOKEN, None, "not-retriable", "m", '"e"') for one in claimed]
    fetch(connection, STEPS.fail(failures))
    return [one.jobs[0].run_id for one in sent]


def test_two_who_replay_the_same_dead_letters_replay_each_once_each_at_the_rate(
    connection, client, row
):
    dead = graveyard(connection, client)
    told = together(*[lambda: client.replay_many(DeadLetters(), rate=RATE)] * 2)
    made = dict(connection.execute(REPLAYS).fetchall())
    row.cases += DEAD
    row.lost += len(set(dead) - made.keys())
    assert made.keys() == set(dead)
    by_outcome = {
        outcome: [one for answers in told for one in answers if one.outcome == outcome]
        for outcome in ("enqueued", "duplicate")
    }
    assert sorted(one.run_id for one in by_outcome["enqueued"]) == dead
    assert all(made[one.run_id] == one.replayed_as for answers in told for one in answers)
    for answers in told:
        due = [one.run_at for one in answers if one.outcome == "enqueued"]
        assert all(then - first >= timedelta(seconds=1 / RATE) for first, then in pairwise(due))


def test_a_dead_run_that_is_replayed_while_it_is_pruned_goes_on_or_is_told_to_be_gone(
    dsn, clock, connection, client, row
):
    for _ in range(ROUNDS):
        dead = graveyard(connection, client)
        before = dict(connection.execute(REPLAYS).fetchall())
        clock.advance(2 * AGE)

        def pruned():
            with psycopg.connect(dsn, autocommit=True) as own:
                return drive(own, prune(Retention(AGE, AGE, AGE, batch=CHUNK), UPKEEP))

        told, _ = together(lambda dead=dead: client.replay_many(dead[::-1]), pruned)
        made = dict(connection.execute(REPLAYS).fetchall())
        row.cases += DEAD
        row.lost += sum(one.outcome == "enqueued" and one.run_id not in made for one in told)
        assert {one.run_id: one.replayed_as for one in told if one.outcome == "enqueued"} == {
            run_id: new for run_id, new in made.items() if run_id not in before
        }
        assert {one.outcome for one in told} <= {"enqueued", "unknown"}
        left = {id_ for (id_,) in connection.execute("select id from jobspec.job_queue")}
        assert not left & {one.run_id for one in told if one.outcome == "unknown"}
