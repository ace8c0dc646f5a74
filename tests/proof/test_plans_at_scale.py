"""What the hot statements read of a large schema: rows that they want, by their indexes.

CI has a tenth of it; with `JOBSPEC_PROOF_FULL=1` there are 1,000,000 runs that ended, 500,000 that
are due later and 10,000 that are due now.
"""

from __future__ import annotations

import os
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from enginekit import SQL, claim
from jobspec_engine.calls import fetch
from jobspec_engine.database import set_up_session
from jobspec_engine.dispatch import Dispatch
from jobspec_engine.events import Encoded
from jobspec_engine.operation_statements import OperationStatements
from jobspec_engine.rows import Completion, DeadLetters, Failure, Held, Suspension
from jobspec_engine.upkeep_statements import UpkeepStatements
from planskit import FEW, OF_A_LANE, OF_A_ROW, kept_plan, looked_at, plan, read_whole
from proof.report import attack

SCALE = 1 if os.environ.get("JOBSPEC_PROOF_FULL") else 10
FINISHED, LATER, READY = (n // SCALE for n in (1_000_000, 500_000, 10_000))
JOBS, PRIORITIES = 20, 3
LARGE = {"job_event", "job_queue", "job_idempotency"}
LEASE, DAY = timedelta(seconds=30), timedelta(days=1)
UPKEEP, OPERATING = UpkeepStatements(), OperationStatements()

# One job in twenty is due now, the others later: a worker of these is idle.
BUSY, IDLE = ("job 0",), tuple(f"job {n}" for n in range(1, JOBS))

INSERT = """
    insert into jobspec.job_event (id, name, data, ts, received_at)
    select lpad(n::text, 9, '0'), 'event', '{}', 0, now() - interval '1 day' + n * interval '1 ms'
    from generate_series(%(first)s::int, %(last)s::int) as n;
"""
INSERT_RUNS = """
    insert into jobspec.job_queue (
        job_id, event_id, event_ts, enqueued_at, run_at, max_attempts, priority, state, finished_at,
        first_claimed_at
    )
    select
        'job ' || case when %(busy)s::bool then 0 else n %% %(jobs)s::int end,
        lpad(n::text, 9, '0'), 0, now(), now() + %(due)s::interval + n * interval '1 ms', 5,
        n %% %(priorities)s::int, %(state)s::text,
        case when %(state)s::text <> 'pending' then now() end,
        case when %(state)s::text <> 'pending' then now() end
    from generate_series(%(first)s::int, %(last)s::int) as n
"""
KEYS = """
    insert into jobspec.job_idempotency (job_id, key_digest, key, run_id, first_at, while_active)
    select job_id, sha256(event_id::bytea), event_id, id, now(), id %% 2 = 0
    from jobspec.job_queue
    where id %% 10 = 0
"""


def insert(connection, first, how_many, due, *, state="pending", busy=False):
    params = {
        "first": first,
        "last": first + how_many - 1,
        "due": due,
        "state": state,
        "busy": busy,
        "jobs": JOBS,
        "priorities": PRIORITIES,
    }
    connection.execute(INSERT, params)
    connection.execute(INSERT_RUNS, params)


@pytest.fixture(scope="module")
def large(databases, template):
    """The address of a database with all of these runs."""
    name, dsn = databases.create(template)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")
        insert(connection, 1, FINISHED, -DAY, state="completed")
        insert(connection, 1 + FINISHED, LATER, DAY)
        insert(connection, 1 + FINISHED + LATER, READY, -DAY, busy=True)
        connection.execute(KEYS, {})
        connection.execute("vacuum (analyze, freeze)")
    yield dsn
    databases.drop(name)


@pytest.fixture(params=[plan, kept_plan], ids=["planned", "kept"])
def explain(request):
    """Executes a statement, by a plan for its parameters or by the one that a server keeps."""
    return request.param


@pytest.fixture
def full(large, explain):
    """A connection in a transaction that is undone: the next test finds the same."""
    with psycopg.connect(large) as connection:
        if explain is kept_plan:
            set_up_session(connection)
        yield connection
        connection.rollback()


def held(connection, how_many, **options):
    """Take runs, and return what a worker holds of them."""
    token = uuid4()
    taken = claim(connection, *BUSY, limit=how_many, token=token, **options)
    assert len(taken) == how_many
    return [Held(run.run_id, token) for run in taken]


def failure(one):
    return Failure(*one, timedelta(0), "attempts-used", "x", '"x"')


def events(how_many, prefix="new"):
    return [Encoded(f"{prefix} {n}", "event", "{}", None) for n in range(how_many)]


def keyed(event):
    return Dispatch(event.id, "job 0", 5, idempotency_digest=b"k" * 32, idempotency_key="k")


def send(_, how_many):
    new = events(how_many)
    return SQL.send(new, [keyed(event) for event in new])


def send_plain(_, how_many):
    new = events(how_many)
    return SQL.send_plain(new, [Dispatch(event.id, "job 0", 5) for event in new])


def send_new(connection, how_many):
    def sent(new):
        return SQL.send_new(new, [Dispatch(event.id, "job 0", 5) for event in new])

    fetch(connection, sent(events(1, "first")))  # a session reads of the catalog what a run must be
    return sent(events(how_many))


def send_idempotent(_, how_many):
    new = events(how_many)
    return SQL.send_idempotent(new, [keyed(event) for event in new])


def send_debounced(_, how_many):
    new = events(how_many)
    key = {"debounce_digest": b"k" * 32, "debounce_key": "k", "wait": timedelta(minutes=1)}
    return SQL.send_debounced(new, [Dispatch(event.id, "job 0", 5, **key) for event in new])


def claims(_, how_many, job_ids=BUSY):
    return SQL.claim(job_ids, how_many, LEASE, uuid4(), "test")


def cancels(connection, how_many):
    first, *others = (run_id for run_id, _ in held(connection, how_many + 1))
    fetch(connection, SQL.cancel([first]))  # a function is planned at its first call
    return SQL.cancel(others)


def reclaims(connection, how_many):
    held(connection, how_many, lease=-LEASE)
    return SQL.reclaim(5, how_many)


def finds_by_key(connection, how_many):
    digest = connection.execute("select sha256('000000010')").fetchone()[0]
    return SQL.runs_with_key("job 10", digest, digest)


STATEMENTS = {
    "claim": claims,
    "heartbeat": lambda full, n: SQL.heartbeat(held(full, n), LEASE),
    "complete": lambda full, n: SQL.complete(Completion(*one, "1") for one in held(full, n)),
    "release": lambda full, n: SQL.release(Suspension(*one) for one in held(full, n)),
    "fail": lambda full, n: SQL.fail(failure(one) for one in held(full, n)),
    "reclaim": reclaims,
    "cancel": cancels,
    "send": send,
    "send_new": send_new,
    "send_plain": send_plain,
    "send_idempotent": send_idempotent,
    "send_debounced": send_debounced,
    "known_events": lambda _, n: SQL.known_events([f"{k:09}" for k in range(1, n + 1)]),
    "runs_with_key": finds_by_key,
    "replayable": lambda _, n: SQL.replayable(range(1, n + 1)),
    "dead_runs": lambda *_: SQL.dead_runs(DeadLetters()),
    "dead_letters": lambda _, n: SQL.dead_letters(DeadLetters(), n),
    "runs": lambda _, n: SQL.runs(None, None, n),
    "events": lambda _, n: OPERATING.events(None, None, n),
    "prune_keys": lambda _, n: UPKEEP.prune_keys(n),
    "prune_runs": lambda _, n: UPKEEP.prune_runs(0, timedelta(0), n),
    "prune_events": lambda _, n: UPKEEP.prune_events(None, "", timedelta(0), n),
}
IDLING = {
    "claim": claims(None, 100, IDLE),
    "next_due": SQL.next_due(IDLE),
    "reclaim": SQL.reclaim(5, 100),
    "see_worker": UPKEEP.see_worker(uuid4(), "test", IDLE),
    "watch_crons": UPKEEP.watch_crons([("job 1", b"c" * 32, "* * * * *")]),
    "prune_dead_letters": UPKEEP.prune_dead_letters(DAY, 1_000),
    "prune_keys": UPKEEP.prune_keys(1_000),
}


@pytest.mark.parametrize("how_many", [1, 100])
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_reads_the_rows_that_it_is_about(full, explain, name, how_many):
    found = explain(full, STATEMENTS[name](full, how_many))
    assert not read_whole(found) & LARGE
    assert looked_at(found) < FEW + OF_A_ROW * how_many


@pytest.mark.parametrize("name", IDLING)
def test_idle_polling_reads_a_bounded_number_of_pages(full, explain, name):
    """A few probes a lane, and nothing of the runs that are due later."""
    found = explain(full, IDLING[name])
    assert not read_whole(found) & LARGE
    assert looked_at(found) < FEW + len(IDLE) * PRIORITIES * OF_A_LANE


def test_a_claim_of_many_jobs_reads_a_few_pages_of_each(full, explain):
    found = explain(full, claims(full, 1, BUSY + IDLE))
    assert not read_whole(found) & LARGE
    assert looked_at(found) < FEW + JOBS * PRIORITIES * OF_A_LANE


def test_draining_what_is_due_reads_as_much_at_its_end_as_at_its_beginning(full, explain):
    """The rows that were taken are still on the pages, dead, and are not read again."""
    costs = [looked_at(explain(full, claims(full, 100))) for _ in range(READY // 100)]
    assert fetch(full, claims(full, 100)) == []
    assert max(costs) < FEW + OF_A_ROW * 100
    with attack("query plans") as row:
        row.cases = READY
