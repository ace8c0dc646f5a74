"""The order in which runs of several jobs and priorities are claimed."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from itertools import count, takewhile

import psycopg
import pytest

from enginekit import SQL, claim, job, jobs, runs, send
from jobspec_engine.calls import fetch

RUNS = 300


def fill(connection, seed, jobs, priorities, dense=1):
    """Make runs that are due; return the lane of each by id, in the order they should be claimed.

    The first job has `dense` times as many as each other one.
    """
    draw = random.Random(seed)
    lanes = [(f"job{n}", p) for n in range(jobs) for p in range(priorities)]
    weights = [dense if job == "job0" else 1 for job, _ in lanes]
    chosen = [(*draw.choices(lanes, weights)[0], draw.randrange(RUNS)) for _ in range(RUNS)]
    with connection.cursor() as cursor:
        cursor.executemany(
            "with event as ("
            "  insert into jobspec.job_event (id, name, data, ts, received_at)"
            "  values (gen_random_uuid(), 'event', '{}', 0, now()) returning id)"
            " insert into jobspec.job_queue"
            " (job_id, event_id, event_ts, enqueued_at, priority, run_at, max_attempts)"
            " select %s, id, 0, now(), %s, now() - interval '1 hour' + %s * interval '1 s', 1"
            " from event",
            chosen,
        )
    connection.execute("analyze")
    rows = connection.execute(
        "select id, job_id, priority from jobspec.job_queue order by priority, run_at, id"
    )
    return {run_id: (job_id, priority) for run_id, job_id, priority in rows}


def batches(connection, lanes, limit):
    """Claim until nothing is due; return the ids of each claim, in the order of its rows."""
    job_ids = sorted({job_id for job_id, _ in lanes.values()})
    claims = ([run.run_id for run in claim(connection, *job_ids, limit=limit)] for _ in count())
    return list(takewhile(bool, claims))


@pytest.mark.parametrize(
    ("jobs", "priorities", "limit"),
    [(1, 1, 50), (2, 1, 50), (1, 2, 50), (6, 3, 8), (40, 1, 30), (2, 60, 4)],
)
def test_runs_are_claimed_by_priority_and_the_longest_due_first(
    connection, jobs, priorities, limit
):
    lanes = fill(connection, 1, jobs, priorities)
    claimed = batches(connection, lanes, limit)
    assert [len(one) for one in claimed[:-1]] == [limit] * (len(claimed) - 1)
    due = dict(
        connection.execute("select id, (priority, run_at)::text from jobspec.job_queue").fetchall()
    )
    assert [due[one] for batch in claimed for one in batch] == [due[one] for one in lanes]


@pytest.mark.parametrize("seed", range(5))
def test_a_run_is_overtaken_by_another_job_at_most_once(connection, seed):
    lanes = fill(connection, seed, 6, 2, dense=20)
    limit = 40
    place = {run_id: n for n, run_id in enumerate(lanes)}
    claimed = batches(connection, lanes, limit)
    assert sum(map(len, claimed)) == RUNS
    taken = []
    for batch in claimed:
        for run_id in batch:
            later = [one for one in taken if place[one] > place[run_id]]
            assert {lanes[one][1] for one in later} <= {lanes[run_id][1]}, "by a lower priority"
            assert max(Counter(lanes[one] for one in later).values(), default=0) <= limit
        taken += batch


def test_a_claim_goes_on_behind_what_others_hold(connection, dsn):
    lanes = fill(connection, 1, 2, 1)
    first = list(lanes)[:100]
    with connection.transaction():
        connection.execute("select from jobspec.job_queue where id = any(%s) for update", [first])
        with psycopg.connect(dsn, autocommit=True) as other:
            got = [run.run_id for run in claim(other, "job0", "job1", limit=50)]
    assert len(got) == 50
    assert not set(got) & set(first)


def test_a_run_that_is_due_later_is_left_beside_one_that_is_due_now(dsn, clock, connection):
    send(dsn, job(), {}, {})
    now, later = runs(connection)
    connection.execute(
        "update jobspec.job_queue set run_at = run_at + interval '1 microsecond' where id = %s",
        [later.id],
    )
    assert [run.run_id for run in claim(connection)] == [now.id]


def test_priorities_at_which_nothing_is_due_keep_no_run_from_being_claimed(dsn, clock, connection):
    send(dsn, job(), *[{}] * 6)
    connection.execute("update jobspec.job_queue set priority = id")
    connection.execute(
        "update jobspec.job_queue set run_at = run_at + interval '1 hour' where id < 6"
    )
    assert fetch(connection, SQL.next_due(["job"])) == [0]
    assert [run.run_id for run in claim(connection, limit=1)] == [6]


def test_the_next_run_is_the_soonest_of_any_priority_whose_job_is_not_paused(
    dsn, clock, connection
):
    compiled = jobs(job={}, paused={"event": "other"})
    send(dsn, compiled, {}, {}, {})
    send(dsn, compiled, event="other")
    connection.execute("insert into jobspec.job_pause values ('paused', jobspec.now())")
    for number, (priority, seconds) in enumerate([(1, 30), (2, 20), (3, 40)], start=1):
        connection.execute(
            "update jobspec.job_queue set priority = %s, run_at = run_at + %s where id = %s",
            [priority, timedelta(seconds=seconds), number],
        )
    assert fetch(connection, SQL.next_due(["job", "paused"])) == [20]
    assert fetch(connection, SQL.next_due(["paused"])) == [None]
