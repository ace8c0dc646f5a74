"""What statements read of a schema that is full: pages, each of which holds many rows."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from enginekit import SQL, claim
from jobspec_engine.calls import fetch
from jobspec_engine.events import Encoded
from jobspec_engine.rows import Completion, Failure, Held, Suspension
from planskit import FEW, OF_A_LANE, OF_A_ROW, Kept, pages

FINISHED, LATER, PRIORITIES = 20_000, 20_000, 3
LEASE = timedelta(seconds=30)


def insert(connection, first, how_many, run_at, state="pending", job_id="job"):
    connection.execute(
        "with event as ("
        "  insert into jobspec.job_event"
        "  select n::text, 'event', '{}', 0, now()"
        "  from generate_series(%(first)s::int, %(last)s::int) as n"
        "  returning id"
        ")"
        " insert into jobspec.job_queue"
        " (job_id, event_id, event_ts, enqueued_at, run_at, max_attempts, priority, state,"
        "  finished_at, first_claimed_at)"
        " select %(job_id)s::text, id, 0, now(), now() + %(run_at)s::interval, 5,"
        "  id::int %% %(priorities)s::int, %(state)s::text,"
        "  case when %(state)s::text = 'completed' then now() end,"
        "  case when %(state)s::text = 'completed' then now() end"
        " from event",
        {
            "first": first,
            "last": first + how_many - 1,
            "run_at": run_at,
            "state": state,
            "job_id": job_id,
            "priorities": PRIORITIES,
        },
    )


@pytest.fixture
def full(connection):
    """A schema with many runs that have ended and many that are due later, and none that is now."""
    insert(connection, 1, FINISHED, timedelta(days=-1), "completed")
    insert(connection, 1 + FINISHED, LATER, timedelta(days=1))
    connection.execute("vacuum analyze")
    return connection


def make_ready(connection, how_many):
    insert(connection, 1 + FINISHED + LATER, how_many, timedelta(hours=-1))
    connection.execute("vacuum analyze")


def worker_calls(limit, held=()):
    """Return what a worker executes again and again, by name."""
    failures = (Failure(*one, timedelta(0), "attempts-used", "x", '"x"') for one in held)
    return {
        "claim": SQL.claim(("job",), limit, LEASE, uuid4(), "test"),
        "next_due": SQL.next_due(("job",)),
        "reclaim": SQL.reclaim(5, limit),
        "heartbeat": SQL.heartbeat(held, LEASE),
        "complete": SQL.complete(Completion(*one, "1") for one in held),
        "fail": SQL.fail(failures),
        "release": SQL.release(Suspension(*one) for one in held),
    }


def test_asking_for_what_is_due_reads_nothing_of_what_is_due_later(full):
    for call in (
        SQL.claim(("job",), 100, LEASE, uuid4(), "test"),
        SQL.next_due(("job",)),
        SQL.reclaim(5, 100),
    ):
        assert pages(full, call) < FEW, call.query.decode()


def test_a_claim_reads_what_it_takes_and_no_more_of_what_is_due(full):
    make_ready(full, 5_000)
    for limit in (1, 100):
        call = SQL.claim(("job",), limit, LEASE, uuid4(), "test")
        assert pages(full, call) < FEW + OF_A_ROW * limit


def test_a_claim_looks_at_no_more_priorities_than_runs_may_come_from(full):
    make_ready(full, 5_000)
    full.execute(
        "update jobspec.job_queue set priority = id - %s"
        " where state = 'pending' and run_at < now()",
        [FINISHED + LATER],
    )
    full.execute("vacuum analyze")
    for limit in (1, 100):
        call = SQL.claim(("job",), limit, LEASE, uuid4(), "test")
        assert pages(full, call) < FEW + OF_A_ROW * limit + OF_A_LANE * 2 * limit
    assert pages(full, SQL.next_due(("job",))) < FEW


def test_a_claim_reads_nothing_of_jobs_that_its_worker_does_not_have_or_that_are_paused(full):
    insert(full, 1 + FINISHED + LATER, 20_000, timedelta(hours=-1), job_id="other")
    insert(full, 1 + FINISHED + LATER + 20_000, 20_000, timedelta(hours=-1), job_id="paused")
    full.execute("insert into jobspec.job_pause values ('paused', now())")
    full.execute("vacuum analyze")
    for call in (
        SQL.claim(("job", "paused"), 100, LEASE, uuid4(), "test"),
        SQL.next_due(("job", "paused")),
    ):
        assert pages(full, call) < FEW, call.query.decode()


def test_a_job_without_runs_costs_a_claim_one_probe(full):
    make_ready(full, 100)
    job_ids = ("job", *(f"empty {n}" for n in range(500)))
    for call in (SQL.claim(job_ids, 100, LEASE, uuid4(), "test"), SQL.next_due(job_ids)):
        assert pages(full, call) < FEW + OF_A_ROW * 100 + 500 * 4, call.query.decode()


@pytest.mark.parametrize("how_many", [1, 100])
@pytest.mark.parametrize("name", worker_calls(1))
def test_the_plan_that_a_worker_has_kept_since_the_tables_were_empty_reads_no_more(
    connection, name, how_many
):
    kept = Kept(connection)
    kept.prepare(name, worker_calls(1)[name])
    insert(connection, 1, FINISHED, timedelta(days=-1), "completed")
    insert(connection, 1 + FINISHED, LATER, timedelta(days=1))
    insert(connection, 1 + FINISHED + LATER, 1_000, timedelta(hours=-1))
    token = uuid4()
    held = [Held(run.run_id, token) for run in claim(connection, limit=how_many, token=token)]
    assert kept.pages(name, worker_calls(how_many, held)[name]) < FEW + OF_A_ROW * how_many


def test_finding_the_runs_of_a_key_reads_those_of_that_key(full):
    full.execute(
        "update jobspec.job_queue set debounce_digest = sha256(event_id::bytea),"
        " debounce_key = event_id, debounce_mode = 'replace'"
    )
    full.execute("vacuum analyze")
    digest = full.execute("select sha256('30000')").fetchone()[0]
    call = SQL.runs_with_key("job", None, digest)
    assert len(fetch(full, call)) == 1
    assert pages(full, call) < FEW


@pytest.mark.parametrize("how_many", [1, 100])
@pytest.mark.parametrize(
    "statement",
    [
        lambda held: SQL.heartbeat(held, LEASE),
        lambda held: SQL.complete(Completion(*one, "1") for one in held),
        lambda held: SQL.release(Suspension(*one) for one in held),
        lambda held: SQL.fail(
            Failure(*one, timedelta(0), "attempts-used", "x", '"x"') for one in held
        ),
    ],
    ids=["heartbeat", "complete", "release", "fail"],
)
def test_what_workers_write_reads_the_rows_that_it_writes(full, statement, how_many):
    make_ready(full, how_many)
    token = uuid4()
    held = [Held(run.run_id, token) for run in claim(full, token=token)]
    assert len(held) == how_many
    assert pages(full, statement(held)) < FEW + OF_A_ROW * how_many


def test_a_reclaim_reads_the_runs_whose_lease_ran_out(full):
    make_ready(full, 100)
    assert len(claim(full, lease=timedelta(seconds=-1))) == 100
    assert pages(full, SQL.reclaim(5, 10)) < FEW + OF_A_ROW * 10


# Steps that wait for an event

WAITS = 10_000


@pytest.fixture
def awaited(connection):
    """A schema with many runs whose steps wait for an event of one name, each for another value."""
    insert(connection, 1, WAITS, timedelta(days=1))
    connection.execute(
        "insert into jobspec.job_step (run_id, task, name, number, position, kind, state, wake_at,"
        "  event_name, event_match, recorded_at)"
        " select id, '', 'answer', 1, 1, 'wait', 'waiting', now() + interval '1 day', 'answer',"
        "  case when id > 1 then json_build_array(json_build_array('id', id)) end, now()"
        " from jobspec.job_queue"
    )
    return connection


@pytest.mark.parametrize("analyzed", [False, True])
def test_an_event_finds_who_waits_for_it_among_many(awaited, analyzed):
    if analyzed:
        awaited.execute("vacuum analyze")
    event = Encoded("new", "answer", '{"id": 4711}', 0)
    assert pages(awaited, SQL.send([event], [])) < FEW + 4 * OF_A_ROW
    settled = "select run_id from jobspec.job_step where state = 'done' order by run_id"
    assert [row[0] for row in awaited.execute(settled)] == [1, 4711]  # the first takes any


def test_an_event_that_nobody_waits_for_is_told_so_by_an_index(awaited):
    event = Encoded("new", "answer", '{"id": 0}', 0)
    pages(awaited, SQL.send([event], []))
    assert pages(awaited, SQL.send([Encoded("newer", "answer", '{"id": 0}', 0)], [])) < FEW
