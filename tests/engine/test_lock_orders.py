"""Statements that meet: whatever two of them want, one waits for the other and neither fails."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from threading import Event
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from enginekit import SQL, claim, job, jobs, runs
from jobspec_engine import Cancelled, Client
from jobspec_engine.calls import fetch
from jobspec_engine.rows import Completion, Failure, Suspension
from jobspec_engine.step_statements import MemoWrite, StepStatements
from meetingkit import assert_no_error, meeting

STEPS = StepStatements()

WHILE_ACTIVE = {"idempotency": {"key": "event.data.key", "window": "while-active"}}


def execute(dsn, call):
    with psycopg.connect(dsn, autocommit=True) as own:
        return fetch(own, call)


def by_pages(dsn):
    """Return an address through which tables are read page by page, as the planner may choose."""
    return make_conninfo(dsn, options="-c enable_indexscan=off -c enable_bitmapscan=off")


def test_a_cancellation_and_the_end_of_the_same_run_do_not_deadlock(dsn, connection):
    """Both want the run and the key that it frees."""
    token = uuid4()
    with Client(job(**WHILE_ACTIVE), dsn) as client:
        client.send("event", {"key": "k"})
        (run,) = claim(connection, token=token)
        told = meeting(
            dsn,
            connection,
            "select from jobspec.job_idempotency for update",
            partial(client.cancel, run.run_id),
            lambda: execute(dsn, SQL.complete([Completion(run.run_id, token, "1")])),
        )
        assert_no_error(told)
        assert told == [Cancelled(run.run_id, "requested"), [run.run_id]]
        assert client.send("event", {"key": "k"}).jobs[0].outcome == "enqueued"


@pytest.mark.parametrize(
    "end",
    [
        lambda held: SQL.complete(Completion(*one, "1") for one in held),
        lambda held: SQL.fail(Failure(*one, None, "attempts-used", "x", '"x"') for one in held),
    ],
    ids=["complete", "fail"],
)
def test_runs_that_end_together_lock_those_that_wait_for_them_in_one_order(dsn, connection, end):
    """Two workers end runs which two others started, each of both, in opposite orders."""
    token = uuid4()
    with Client(job(), dsn) as client:
        for n in range(10):
            client.send("event", {"n": n})
    one, two, three, four, *children = [run.run_id for run in claim(connection, token=token)]
    parents = (one, three, two, two, four, one)
    for child, parent in zip(children, parents, strict=True):
        connection.execute(
            "update jobspec.job_queue set parent_run_id = %s where id = %s", [parent, child]
        )
    told = meeting(
        dsn,
        connection,
        f"select from jobspec.job_queue where id in ({three}, {four}) for update",
        lambda: execute(dsn, end([(child, token) for child in children[:3]])),
        lambda: execute(dsn, end([(child, token) for child in children[3:]])),
    )
    assert_no_error(told)
    assert all(run.signalled for run in runs(connection)[:4])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)], ids=["upwards", "downwards"])
@pytest.mark.parametrize(
    "end",
    [
        lambda held: SQL.complete(Completion(*one, "1") for one in held),
        lambda held: SQL.fail(
            Failure(*one, timedelta(0), "attempts-used", "x", '"x"') for one in held
        ),
        lambda held: SQL.release(Suspension(*one) for one in held),
        lambda held: STEPS.remember(
            MemoWrite(*one, "", "step", 1, 1, "run", "done", result="1") for one in held
        ),
    ],
    ids=["complete", "fail", "release", "remember"],
)
def test_the_runs_of_a_batch_are_locked_by_id_wherever_they_lie(dsn, connection, end, order):
    """A small table is read page by page, and the first run lies last."""
    token = uuid4()
    with Client(job(), dsn) as client:
        for n in range(3):
            client.send("event", {"n": n})
    one, two, three = given = [run.run_id for run in claim(connection, token=token)]
    for moved in (two, one):
        connection.execute("update jobspec.job_queue set passes = 7 where id = %s", [moved])
    told = meeting(
        dsn,
        connection,
        f"select from jobspec.job_queue where id = {two} for update",
        lambda: execute(dsn, end([(given[place], token) for place in order])),
        lambda: execute(by_pages(dsn), SQL.cancel([one, three])),
    )
    assert_no_error(told)


@pytest.mark.parametrize(
    "end",
    [
        lambda held: SQL.complete(Completion(*one, "1") for one in held),
        lambda held: SQL.fail(Failure(*one, None, "attempts-used", "x", '"x"') for one in held),
    ],
    ids=["complete", "fail"],
)
def test_the_runs_that_wait_for_a_batch_are_locked_by_id_wherever_they_lie(dsn, connection, end):
    token = uuid4()
    with Client(job(), dsn) as client:
        for n in range(6):
            client.send("event", {"n": n})
    one, two, three, *children = [run.run_id for run in claim(connection, token=token)]
    for child, parent in zip(children, (one, two, three), strict=True):
        connection.execute(
            "update jobspec.job_queue set parent_run_id = %s where id = %s", [parent, child]
        )
    for moved in (two, one):
        connection.execute("update jobspec.job_queue set passes = 7 where id = %s", [moved])
    told = meeting(
        dsn,
        connection,
        f"select from jobspec.job_queue where id = {two} for update",
        lambda: execute(dsn, end([(child, token) for child in children])),
        lambda: execute(dsn, SQL.cancel([one, three])),
    )
    assert_no_error(told)


def test_what_a_run_that_drifted_waits_for_is_waited_for_by_its_replay(dsn, connection):
    token = uuid4()
    with Client(job(), dsn) as client:
        for n in range(2):
            client.send("event", {"n": n})
        parent, child = [run.run_id for run in claim(connection, token=token)]
        connection.execute(
            "update jobspec.job_queue set parent_run_id = %s where id = %s", [parent, child]
        )
        connection.execute(
            "insert into jobspec.job_step (run_id, task, name, number, position, kind, state,"
            " child_run_id, recorded_at)"
            " values (%s, '', 'child', 1, 1, 'invoke', 'waiting', %s, now())",
            [parent, child],
        )
        fetch(connection, SQL.fail([Failure(parent, token, None, "step-drift", "x", '"x"')]))
        replay = client.replay(parent)
        fetch(connection, SQL.complete([Completion(child, token, "1")]))
    assert replay.outcome == "enqueued"
    again = runs(connection)[-1]
    assert (again.id, again.signalled) == (replay.replayed_as, True)


def test_a_replay_that_hands_on_what_its_run_waits_for_and_the_end_of_that_do_not_deadlock(
    dsn, connection
):
    """The replay is stopped between the two by another's event of the id that it wants."""
    token = uuid4()
    with Client(job(), dsn) as client:
        for n in range(2):
            client.send("event", {"n": n})
        parent, child = [run.run_id for run in claim(connection, token=token)]
        connection.execute(
            "update jobspec.job_queue set parent_run_id = %s where id = %s", [parent, child]
        )
        connection.execute(
            "insert into jobspec.job_step (run_id, task, name, number, position, kind, state,"
            " child_run_id, recorded_at)"
            " values (%s, '', 'child', 1, 1, 'invoke', 'waiting', %s, now())",
            [parent, child],
        )
        fetch(connection, SQL.fail([Failure(parent, token, None, "step-drift", "x", '"x"')]))
        told = meeting(
            dsn,
            connection,
            "insert into jobspec.job_event"
            " select 'jobspec/replay/' || min(id), 'event', '{}', 0, now() from jobspec.job_queue",
            partial(client.replay, parent),
            lambda: execute(dsn, SQL.complete([Completion(child, token, "1")])),
            end=psycopg.Connection.rollback,
        )
    assert_no_error(told)
    replay, ended = told
    assert (replay.outcome, ended) == ("enqueued", [child])
    (handed_on,) = connection.execute(
        "select state from jobspec.job_step where run_id = %s", [replay.replayed_as]
    ).fetchone()
    assert handed_on == "done"


def test_a_replay_and_a_cancellation_of_runs_that_have_not_ended_do_not_deadlock(dsn, connection):
    """The cancellation locks the run that a send may join last: a send has its key before it."""
    both = {**WHILE_ACTIVE, "debounce": {"period": "1m", "key": "event.data.key"}}
    compiled = jobs(waiting=both, other={"event": "other"})
    with Client(compiled, dsn) as client:
        waits = client.send("event", {"key": "k"}).jobs[0].run_id
        client.send("other", {})
        (running,) = claim(connection, "other")
        run_ids = [waits, running.run_id]
        replayed = Event()

        def replay():
            try:
                return client.replay_many(run_ids)
            finally:
                replayed.set()

        told = meeting(
            dsn,
            connection,
            "select from jobspec.job_idempotency for update",
            lambda: execute(dsn, SQL.cancel(run_ids)),
            replay,
            done=replayed,
        )
    assert_no_error(told)
    assert [one.outcome for one in told[0]] == ["cancelled", "requested"]
    assert [one.outcome for one in told[1]] == ["not-dead", "not-dead"]
