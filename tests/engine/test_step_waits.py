"""Steps that wait for others: for an event, for a run. No wake-up is lost."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from databases import together
from enginekit import (
    Gate,
    blocked,
    claim,
    count,
    job,
    jobs,
    run_of,
    run_until_idle,
    runs,
    until,
    until_async,
    working,
)
from jobspec_engine import Client
from jobspec_engine.calls import fetch
from jobspec_engine.errors import StepError, StepFailed
from jobspec_engine.memos import StepCall, StepKey
from jobspec_engine.rows import Held, Suspension
from jobspec_engine.step_statements import Child, MemoWrite, StepStatements

HOUR = timedelta(hours=1)
STEPS = StepStatements()
WAIT = StepCall(StepKey("", "stopped", 1), "wait", 1)


def waits_for_stop(**options):
    async def handler(context):
        event = await context.step.wait_for_event("stopped", timeout=HOUR, **options)
        return event and [event.name, event.data, event.ts]

    return job(handler=handler)


def send(dsn, compiled, *events):
    with Client(compiled, dsn) as client:
        for name, data in events:
            client.send(name, data, ts=1)


async def test_a_run_wakes_for_its_event_and_is_given_it(dsn, clock, connection):
    compiled = waits_for_stop()
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    assert run_of(connection).run_at == clock.now() + HOUR
    send(dsn, compiled, ("started", {}), ("stopped", {"exit": "\0", "deep": [1.5]}))
    assert run_of(connection).run_at == clock.now()
    await run_until_idle(compiled, dsn)
    assert run_of(connection).result == ["stopped", {"exit": "\0", "deep": [1.5]}, 1]


async def test_a_wait_that_nothing_comes_to_ends_in_none_at_its_time(dsn, clock, connection):
    compiled = waits_for_stop()
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    clock.advance(HOUR)
    send(dsn, compiled, ("stopped", {}))  # too late, though its run was not woken yet
    await run_until_idle(compiled, dsn)
    assert (run_of(connection).state, run_of(connection).result) == ("completed", None)
    assert connection.execute("select wake_at from jobspec.job_step").fetchall() == [(None,)]


async def test_an_event_from_before_the_run_is_not_waited_for(dsn, clock, connection):
    compiled = waits_for_stop()
    send(dsn, compiled, ("stopped", {}))
    clock.advance(1)
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    assert run_of(connection).state == "pending"


@pytest.mark.parametrize(
    ("match", "wrong", "right"),
    [
        ("data.id", {"id": 8}, {"id": 7}),
        ({"data.id": "a"}, {"id": "b"}, {"id": "a"}),
        ({"data.id": "a"}, {}, {"id": "a"}),
        ({"data.id": 1}, {"id": "1"}, {"id": 1}),
        ({"data.id": None}, {}, {"id": None}),
        ({"data.id": True}, {"id": 1}, {"id": True}),
        ({"data.a.b": "é\0"}, {"a": {"b": "é"}}, {"a": {"b": "é\0"}}),
        ({"data.id": "\\u0000"}, {"id": "\0"}, {"id": "\\u0000"}),
        ({"data.x": 1, "data.y": 2}, {"x": 1, "y": 1}, {"x": 1, "y": 2}),
        ({"data.y": 2, "data.x": 1}, {"x": 1, "y": 1}, {"x": 1, "y": 2}),
    ],
)
async def test_a_wait_is_for_the_event_that_matches(dsn, clock, connection, match, wrong, right):
    compiled = waits_for_stop(match=match)
    send(dsn, compiled, ("event", {"id": 7}))
    await run_until_idle(compiled, dsn)
    send(dsn, compiled, ("stopped", wrong))
    assert run_of(connection).run_at == clock.now() + HOUR
    send(dsn, compiled, ("stopped", right))
    await run_until_idle(compiled, dsn)
    assert run_of(connection).result[1] == right


async def test_one_event_wakes_all_who_wait_for_it_and_of_several_the_first_counts(
    dsn, clock, connection
):
    compiled = waits_for_stop()
    send(dsn, compiled, ("event", {}), ("event", {}))
    await run_until_idle(compiled, dsn)
    send(dsn, compiled, ("stopped", {"n": 1}), ("stopped", {"n": 2}))
    await run_until_idle(compiled, dsn)
    assert [run.result[1] for run in runs(connection)] == [{"n": 1}, {"n": 1}]


async def test_a_sleeping_worker_is_woken_for_the_event(dsn, connection):
    compiled = waits_for_stop()
    async with working(compiled, dsn, poll=HOUR):
        send(dsn, compiled, ("event", {}))
        await until_async(lambda: run_of(connection).passes == 1, "the first pass")
        await until_async(lambda: run_of(connection).state == "pending", "the wait")
        send(dsn, compiled, ("stopped", {}))
        await until_async(lambda: run_of(connection).state == "completed", "the end")


# The race: an event that comes between the wait's begin and the slot's being given back


either_way = pytest.mark.parametrize(
    "remember", [lambda write: STEPS.remember([write]), STEPS.remember_one], ids=["many", "one"]
)


def begun_wait(dsn, connection):
    """Claim a run and begin its wait, as a worker does; return what holds the run."""
    send(dsn, job(), ("event", {}))
    (run,) = claim(connection, token=(token := uuid4()))
    held = Held(run.run_id, token)
    write = MemoWrite.of(held, WAIT, "waiting")._replace(delay=HOUR, event_name="stopped")
    assert fetch(connection, STEPS.remember([write]))
    return held


def suspend(connection, held, clock):
    return fetch(connection, STEPS.release([Suspension(*held, clock.now() + HOUR)]))


@either_way
def test_an_event_that_comes_when_a_wait_was_over_is_left_to_the_next_wait(
    dsn, clock, connection, remember
):
    held = begun_wait(dsn, connection)
    clock.advance(2 * HOUR)
    done = MemoWrite.of(held, WAIT, "done")._replace(event_name="stopped")
    (kept,) = fetch(connection, remember(done))
    assert kept.memo.answers_from == clock.START + HOUR


@either_way
@pytest.mark.parametrize(("begun", "since"), [(-HOUR, -HOUR), (HOUR, 0 * HOUR), (None, 0 * HOUR)])
def test_a_step_is_answered_by_what_comes_since_it_was_begun(
    dsn, clock, connection, begun, since, remember
):
    send(dsn, job(), ("event", {}))
    (run,) = claim(connection, token=(token := uuid4()))
    write = MemoWrite(run.run_id, token, "", "ask", 1, 1, "run", "done", result="1")
    write = write._replace(begun_at=None if begun is None else clock.START + begun)
    (kept,) = fetch(connection, remember(write))
    assert kept.memo.answers_from == clock.START + since


@pytest.mark.parametrize(
    "write",
    [
        lambda held: STEPS.remember_one(MemoWrite.of(held, WAIT, "done")),
        lambda held: STEPS.look_back(held, WAIT.key, None, []),
        lambda held: STEPS.reopen(held, WAIT.key),
        lambda held: STEPS.invoke(
            held, StepCall(StepKey("", "other", 1), "invoke", 2), Child("job", "e", "{}", 1)
        ),
    ],
    ids=["remember", "look back", "reopen", "invoke"],
)
def test_whoever_lost_a_lease_changes_no_step(dsn, clock, connection, write):
    held = begun_wait(dsn, connection)
    assert fetch(connection, write(held._replace(lease_token=uuid4()))) == []
    assert len(runs(connection)) == 1


def test_an_event_between_the_begin_of_a_wait_and_its_suspension_is_not_lost(
    dsn, clock, connection
):
    held = begun_wait(dsn, connection)
    send(dsn, job(), ("stopped", {}))
    assert suspend(connection, held, clock) == [held]
    assert run_of(connection).run_at == clock.now()


def test_nor_is_one_whose_send_had_not_committed_when_the_run_was_suspended(dsn, clock, connection):
    held = begun_wait(dsn, connection)
    with Client(job(), dsn) as client, psycopg.connect(dsn) as sending:
        client.send("stopped", {}, connection=sending)

        def commit():
            until(lambda: blocked(connection), "the suspension's wait")
            sending.commit()

        with psycopg.connect(dsn, autocommit=True) as suspending:
            together(lambda: suspend(suspending, held, clock), commit)
    assert run_of(connection).run_at == clock.now()


def test_nor_one_that_waited_for_the_suspension(dsn, clock, connection):
    """The send has seen the run running; the run is pending when it may go on."""
    held = begun_wait(dsn, connection)
    with Client(job(), dsn) as client, psycopg.connect(dsn) as suspending:
        suspend(suspending, held, clock)

        def commit():
            until(lambda: blocked(connection), "the send's wait")
            suspending.commit()

        together(lambda: client.send("stopped", {}), commit)
    assert (run_of(connection).state, run_of(connection).run_at) == ("pending", clock.now())


def test_a_send_locks_the_run_before_its_memo_as_all_do_who_write_memos(dsn, clock, connection):
    """In any other order the two would wait for each other, and one would fail."""
    held = begun_wait(dsn, connection)
    given_up = MemoWrite.of(held, WAIT, "done")._replace(event_name="stopped")
    with Client(job(), dsn) as client, psycopg.connect(dsn) as writing:
        writing.execute("select from jobspec.job_queue for no key update")

        def write():
            until(lambda: blocked(connection), "the send's wait")
            fetch(writing, STEPS.remember([given_up]))
            writing.commit()

        sent, written = together(lambda: client.send("stopped", {}), write)
    assert (sent.jobs, written) == ((), None)
    assert connection.execute("select state, result from jobspec.job_step").fetchone() == (
        "done",
        None,
    )


@either_way
def test_an_event_and_the_end_of_its_wait_settle_it_once(dsn, clock, connection, remember):
    held = begun_wait(dsn, connection)
    send(dsn, job(), ("stopped", {"n": 1}))
    given_up = MemoWrite.of(held, WAIT, "done")._replace(event_name="stopped")
    (kept,) = fetch(connection, remember(given_up))
    assert '"n":1' in kept.memo.result.replace(" ", "")


@pytest.mark.parametrize(
    "options", [{}, {"idempotency": "event.data.key"}, {"debounce": {"period": "1m"}}]
)
def test_an_event_settles_a_wait_whatever_keys_its_own_run_has(dsn, clock, connection, options):
    begun_wait(dsn, connection)
    starts = jobs(starts={"event": "stopped", **options})
    with Client(starts, dsn) as client:
        (told,) = client.send("stopped", {"key": 1}).jobs
    assert told.outcome == "enqueued"
    assert [run.job_id for run in runs(connection)] == ["job", "starts"]
    assert connection.execute("select state from jobspec.job_step").fetchall() == [("done",)]


def test_an_event_that_was_sent_before_settles_nothing(dsn, clock, connection):
    send_id = "once"
    with Client(job(), dsn) as client:
        client.send("stopped", {}, id=send_id)
        begun_wait(dsn, connection)
        client.send("stopped", {}, id=send_id)
    assert connection.execute("select state from jobspec.job_step").fetchall() == [("waiting",)]


# Sending


async def test_an_event_is_sent_once_however_often_the_handler_is_entered(dsn, clock, connection):
    sent = []

    async def handler(context):
        sent.append(await context.step.send_event("done", {"n": 1}, ts=7))
        await context.step.sleep("rest", HOUR)

    compiled = jobs(job={"handler": handler}, other={"event": "done"})
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    clock.advance(HOUR)
    await run_until_idle(compiled, dsn)
    assert sent[0] == sent[1]
    assert [(one.job_id, one.outcome) for one in sent[0].jobs] == [("other", "enqueued")]
    assert [(run.job_id, run.event_ts) for run in runs(connection)] == [("job", 1), ("other", 7)]


# Invoking


def parent_and_child(child, **options):
    async def parent(context):
        try:
            return [await context.step.invoke("child", {"n": 1})]
        except StepFailed as error:
            return error.message

    return jobs(job={"handler": parent}, child={"event": "never", "handler": child, **options})


async def test_an_invoked_run_gives_its_result_to_the_one_that_waits(dsn, clock, connection):
    async def child(context):
        return {"got": context.event.data["n"], "name": context.event.name}

    compiled = parent_and_child(child)
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    parent, invoked = runs(connection)
    assert parent.result == [{"got": 1, "name": "jobspec/job.invoked"}]
    assert invoked.parent_run_id == parent.id
    assert parent.attempt == 1


async def test_an_invoked_run_that_fails_raises_where_the_handler_can_catch_it(
    dsn, clock, connection
):
    async def child(context):
        raise ValueError("no \0 luck")

    compiled = parent_and_child(child, retries=0)
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    parent, invoked = runs(connection)
    assert parent.result == f"run {invoked.id}: ValueError: no \N{SYMBOL FOR NULL} luck"


async def test_an_invoked_run_that_is_cancelled_raises_too(dsn, clock, connection):
    gate = Gate()
    compiled = parent_and_child(gate)
    async with working(compiled, dsn):
        send(dsn, compiled, ("event", {}))
        child = await gate.next()
        with Client(compiled, dsn) as client:
            client.cancel(child.run_id)
        await until_async(lambda: runs(connection)[0].state == "completed", "the end")
    assert runs(connection)[0].result == f"run {child.run_id}: cancelled"


async def test_a_run_waits_for_the_one_it_invoked_and_wakes_when_that_ends(dsn, clock, connection):
    gate = Gate()
    compiled = parent_and_child(gate)
    async with working(compiled, dsn, poll=HOUR):
        send(dsn, compiled, ("event", {}))
        await gate.next()
        await until_async(lambda: runs(connection)[0].state == "pending", "the wait")
        assert runs(connection)[0].run_at >= clock.now() + HOUR
        gate.open.set()
        await until_async(lambda: runs(connection)[0].state == "completed", "the end")
    assert runs(connection)[0].result == [1]


async def test_a_job_that_the_worker_does_not_know_can_not_be_invoked(dsn, connection):
    async def handler(context):
        with pytest.raises(StepError, match="invokes job `nobody`, which this worker does not"):
            await context.step.invoke("nobody")

    compiled = job(handler=handler)
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    assert run_of(connection).state == "completed"


def test_an_invocation_that_is_executed_again_makes_no_second_run(dsn, connection):
    held = begun_wait(dsn, connection)
    call = StepCall(StepKey("", "child", 1), "invoke", 2)
    first, second = (
        fetch(connection, STEPS.invoke(held, call, Child("child", event_id, "{}", 1)))
        for event_id in ("one", "two")
    )
    assert first == second
    assert count(connection, "job_queue") == 2
    assert not fetch(
        connection, STEPS.invoke(Held(held.run_id, uuid4()), call, Child("child", "x", "{}", 1))
    )
