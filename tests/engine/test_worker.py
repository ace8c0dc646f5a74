"""The worker from a claim to the end: what handlers get, what is kept, wake-ups, stopping."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest
from psycopg import AsyncConnection

import jobspec
from enginekit import (
    PATIENCE,
    Gate,
    count,
    job,
    jobs,
    run_of,
    run_until_idle,
    runs,
    send,
    until_async,
    worker,
    working,
)
from jobspec_engine import AsyncClient, Client, Engine, Event, Worker
from jobspec_engine.errors import HandlerError

HOUR = timedelta(hours=1)


def state(connection):
    return run_of(connection).state


async def test_a_run_is_given_its_event_and_leaves_its_result(dsn, connection):
    seen = []

    async def handler(context):
        seen.append(context)
        return {"doubled": context.event.data["n"] * 2}

    compiled = job(handler=handler)
    with Client(compiled, dsn) as client:
        client.send("event", {"n": 21}, id="e", ts=5)
    await run_until_idle(compiled, dsn)
    (context,) = seen
    run = run_of(connection)
    assert (context.run_id, context.job_id, context.attempt) == (run.id, "job", 1)
    assert (context.event.id, context.event.name, context.event.ts) == ("e", "event", 5)
    assert (run.state, run.result, run.lease_token) == ("completed", {"doubled": 42}, None)
    assert run.finished_at is not None


async def test_of_runs_that_are_due_those_with_the_smallest_priority_are_claimed_first(dsn):
    order = []

    async def handler(context):
        order.append(context.event.data["priority"])

    compiled = job(handler=handler)
    with Client(compiled, dsn) as client:
        for priority in (5, -1, 0, -1, 3):
            client.add_job("job", {"priority": priority}, priority=priority)
    await run_until_idle(compiled, dsn, concurrency=1)
    assert order == [-1, -1, 0, 3, 5]


async def test_a_run_that_is_not_due_waits_for_its_time(dsn, clock, connection):
    compiled = job(debounce={"period": "1h"})
    send(dsn, compiled)
    async with working(compiled, dsn) as at_work:
        assert await at_work._until_next_due() == pytest.approx(0.02)
        assert state(connection) == "pending"
        clock.advance(HOUR)
        await until_async(lambda: state(connection) == "completed")


async def test_runs_are_claimed_in_the_order_in_which_they_are_due(dsn, clock):
    order = []

    async def handler(context):
        order.append(context.event.data["n"])

    compiled = jobs(
        soon={"event": "soon", "handler": handler},
        late={"event": "late", "handler": handler, "debounce": {"period": "10s"}},
    )
    send(dsn, compiled, {"n": "late"}, event="late")
    clock.advance(5)
    send(dsn, compiled, *({"n": n} for n in range(5)), event="soon")
    clock.advance(10)
    await run_until_idle(compiled, dsn, concurrency=1)
    assert order == [0, 1, 2, 3, 4, "late"]


async def test_a_worker_runs_no_more_at_once_than_its_concurrency(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, *[{}] * 5)
    async with working(compiled, dsn, concurrency=2):
        await gate.next()
        await gate.next()
        states = [run.state for run in runs(connection)]
        assert (states.count("running"), gate.entered.qsize()) == (2, 0)
        gate.open.set()
        await until_async(lambda: {run.state for run in runs(connection)} == {"completed"})


async def test_a_worker_leaves_the_runs_of_jobs_it_does_not_know(dsn, connection):
    send(dsn, jobs(mine={}, other={}))
    await run_until_idle(jobs(mine={}), dsn)
    assert {run.job_id: run.state for run in runs(connection)} == {
        "mine": "completed",
        "other": "pending",
    }


async def test_two_workers_share_the_runs_and_none_runs_twice(dsn, connection):
    seen = []

    async def handler(context):
        seen.append(context.event.data["n"])
        await asyncio.sleep(0)

    compiled = job(handler=handler)
    send(dsn, compiled, *({"n": n} for n in range(300)))
    async with asyncio.timeout(PATIENCE):
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(worker(compiled, dsn, concurrency=7).run(until_idle=True))
    assert sorted(seen) == list(range(300))
    assert {(run.state, run.attempt) for run in runs(connection)} == {("completed", 1)}


async def test_an_idle_worker_is_woken_by_a_send(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    async with working(compiled, dsn, poll=HOUR) as at_work:
        await until_async(lambda: listening(connection), "the worker's listening")
        await until_async(lambda: not at_work._nudge.is_set())
        send(dsn, compiled)
        await gate.next()
        gate.open.set()


async def test_an_idle_worker_is_woken_by_the_commit_of_the_caller_s_transaction(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    async with working(compiled, dsn, poll=HOUR):
        await until_async(lambda: listening(connection), "the worker's listening")
        with Client(compiled, dsn) as client, connection.transaction():
            client.send("event", {}, connection=connection)
        await gate.next()
        gate.open.set()


async def test_an_idle_worker_is_woken_by_an_async_client_alike(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    async with working(compiled, dsn, poll=HOUR), AsyncClient(compiled, dsn) as client:
        await until_async(lambda: listening(connection), "the worker's listening")
        await client.send_many([Event("event", {})])
        await gate.next()
        async with await AsyncConnection.connect(dsn) as own:
            await client.send("event", {}, connection=own)
        await gate.next()
        gate.open.set()


def listening(connection):
    query = "select true from pg_stat_activity where query like 'listen%%' and datname = %s"
    return connection.execute(query, [connection.info.dbname]).fetchone()


async def test_stop_lets_the_running_runs_end_and_claims_no_more(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, {}, {})
    stopped = worker(compiled, dsn, concurrency=1)
    task = asyncio.create_task(stopped.run())
    await gate.next()
    stopped.stop()
    gate.open.set()
    await asyncio.wait_for(task, PATIENCE)
    assert [run.state for run in runs(connection)] == ["completed", "pending"]


async def test_stop_now_gives_the_running_runs_back_with_their_attempt_unused(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, {}, {}, {})
    stopped = worker(compiled, dsn)
    task = asyncio.create_task(stopped.run())
    for _ in range(3):
        await gate.next()
    stopped.stop(now=True)
    await asyncio.wait_for(task, PATIENCE)
    assert gate.left == ["cancelled"] * 3
    for run in runs(connection):
        assert (run.state, run.attempt, run.refunds, run.lease_token) == ("pending", 0, 0, None)


async def test_stop_now_also_gives_back_what_was_claimed_and_not_entered_yet(dsn, connection):
    """A handler that stops its worker is entered before the others of the same claim."""
    entered = []

    async def handler(context):
        entered.append(context.run_id)
        stopped.stop(now=True)
        await asyncio.Event().wait()

    compiled = job(handler=handler)
    send(dsn, compiled, {}, {}, {})
    stopped = worker(compiled, dsn)
    await asyncio.wait_for(stopped.run(), PATIENCE)
    assert len(entered) == 1
    assert {(run.state, run.attempt) for run in runs(connection)} == {("pending", 0)}


async def test_stop_now_after_stop_ends_a_drain_that_takes_too_long(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled)
    stopped = worker(compiled, dsn)
    task = asyncio.create_task(stopped.run())
    await gate.next()
    stopped.stop()
    assert not task.done()
    stopped.stop(now=True)
    await asyncio.wait_for(task, PATIENCE)
    assert (run_of(connection).state, run_of(connection).attempt) == ("pending", 0)


async def test_a_run_that_was_given_back_starts_over_with_the_same_attempt(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled)
    first = worker(compiled, dsn)
    task = asyncio.create_task(first.run())
    assert (await gate.next()).attempt == 1
    first.stop(now=True)
    await asyncio.wait_for(task, PATIENCE)
    gate.open.set()
    await run_until_idle(compiled, dsn)
    assert (await gate.next()).attempt == 1
    assert (run_of(connection).state, run_of(connection).result) == ("completed", 1)


async def test_what_a_sync_handler_returns_after_stop_now_is_not_recorded(dsn, connection):
    entered, leave, left = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def handler(context):
        loop.call_soon_threadsafe(entered.set)
        leave.wait(PATIENCE)
        left.set()

    compiled = job(handler=handler)
    send(dsn, compiled)
    stopped = worker(compiled, dsn)
    task = asyncio.create_task(stopped.run())
    await asyncio.wait_for(entered.wait(), PATIENCE)
    stopped.stop(now=True)
    await asyncio.wait_for(task, PATIENCE)
    leave.set()
    assert left.wait(PATIENCE)
    assert (run_of(connection).state, run_of(connection).attempt) == ("pending", 0)


async def test_cancelling_the_worker_gives_its_runs_back(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled)
    task = asyncio.create_task(worker(compiled, dsn).run())
    await gate.next()
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE)
    assert task.cancelled()
    assert (run_of(connection).state, run_of(connection).attempt) == ("pending", 0)


async def test_sync_handlers_run_in_threads_beside_each_other(dsn, connection):
    barrier = threading.Barrier(4, timeout=PATIENCE)

    def handler(context):
        barrier.wait()
        return threading.current_thread().name

    compiled = job(handler=handler)
    send(dsn, compiled, *[{}] * 4)
    await run_until_idle(compiled, dsn)
    names = {run.result for run in runs(connection)}
    assert len(names) == 4
    assert threading.current_thread().name not in names


def name_thread(*_):
    return threading.current_thread().name


async def name_thread_of_step(context):
    return await context.step.run("name", name_thread)


@pytest.mark.parametrize("handler", [name_thread, name_thread_of_step])
@pytest.mark.parametrize("options", [{}, {"timeouts": {"finish": "1h"}}], ids=["any", "in time"])
async def test_what_is_sync_runs_in_threads_of_the_worker_s_own(dsn, connection, handler, options):
    compiled = job(handler=handler, **options)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    assert run_of(connection).result.startswith("jobspec handler")


async def test_a_worker_survives_the_loss_of_each_of_its_connections(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled)
    async with working(compiled, dsn, lease=timedelta(seconds=1)):
        await gate.next()
        lease_until = run_of(connection).lease_until
        await until_async(lambda: run_of(connection).lease_until > lease_until, "a heartbeat")
        for application in ("leases", "worker", "wake-ups"):
            assert terminate(connection, f"jobspec {application}")
        await until_async(lambda: listening(connection), "the worker's listening")
        gate.open.set()
        await until_async(lambda: state(connection) == "completed")
        send(dsn, compiled)
        await until_async(lambda: runs(connection)[1].state == "completed")
    assert {(run.attempt, run.refunds) for run in runs(connection)} == {(1, 0)}


def terminate(connection, application):
    """End the sessions of an application in this database; return how many."""
    query = (
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = %s and datname = current_database()"
    )
    return len(connection.execute(query, [application]).fetchall())


async def test_a_worker_does_not_claim_in_a_tight_loop_while_a_due_run_is_locked(
    dsn, clock, connection
):
    compiled = job(debounce={"period": "10s"})
    send(dsn, compiled)
    clock.advance(10)
    with connection.transaction():
        connection.execute("select from jobspec.job_queue for update")
        async with working(compiled, dsn, poll=HOUR) as at_work:
            assert await at_work._until_next_due() >= 0.01
    assert state(connection) == "pending"


def test_a_worker_names_every_handler_that_it_can_not_run(dsn):
    compiled = jobspec.compile(
        "jobs:\n"
        "  - {id: missing, triggers: [event], handler: 'no_such_module_here:run'}\n"
        "  - {id: wrong, triggers: [event], handler: 'json:no_such_function'}\n"
        "  - {id: sound, triggers: [event], handler: 'json:dumps'}\n"
    )
    with pytest.raises(HandlerError, match=r"(?s)job `missing`.*job `wrong`") as raised:
        Worker(compiled, dsn)
    assert "sound" not in str(raised.value)


async def test_an_engine_migrates_sends_and_works(empty_dsn):
    seen = []

    async def handler(context):
        seen.append(context.event.data["n"])

    async with Engine(job(handler=handler), empty_dsn) as engine:
        engine.migrate()
        await engine.send("event", {"n": 1})
        await engine.send_many([Event("event", {"n": n}) for n in (2, 3)])
        await asyncio.wait_for(engine.worker(concurrency=1).run(until_idle=True), PATIENCE)
    assert seen == [1, 2, 3]


async def test_two_engines_on_one_database_share_its_runs(dsn, connection):
    compiled = job(idempotency="event.data.key")
    async with Engine(compiled, dsn) as one, Engine(compiled, dsn) as two:
        for n in range(20):
            sends = [engine.send("event", {"key": n}) for engine in (one, two) * 4]
            outcomes = [sent.jobs[0].outcome for sent in await asyncio.gather(*sends)]
            assert sorted(outcomes) == ["duplicate"] * 7 + ["enqueued"]
        await asyncio.gather(*(e.worker().run(until_idle=True) for e in (one, two)))
    assert count(connection, "job_queue") == 20
    assert {(run.state, run.attempt) for run in runs(connection)} == {("completed", 1)}
