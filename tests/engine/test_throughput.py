"""What a worker does to be fast, and what of it must not be seen: claims ahead, records behind."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from contextvars import ContextVar
from uuid import UUID, uuid4

import pytest

from enginekit import (
    PATIENCE,
    SQL,
    Gate,
    claim,
    dead_letters,
    job,
    jobs,
    run_of,
    run_until_idle,
    runs,
    until_async,
    worker,
    working,
)
from jobspec_engine import Client, Event, Worker
from jobspec_engine import recorder as recorder_module
from jobspec_engine.persistence import Persistence
from jobspec_engine.recorder import Recorder
from jobspec_engine.rows import Completion, Failure, Held, Suspension
from jobspec_engine.slots import Slots


def send(dsn, compiled, how_many=1, event="event"):
    with Client(compiled, dsn) as client:
        for n in range(how_many):
            client.send(event, {"n": n})


def states(connection):
    return [run.state for run in runs(connection)]


class Told:
    """Takes what a recorder tells: of each lease, whether the end of its run was recorded."""

    def __init__(self):
        self.kept = {}

    def __call__(self, ended, kept):
        self.kept |= {Held(one.run_id, one.lease_token): one.run_id in kept for one in ended}


@pytest.fixture
def ahead(monkeypatch):
    """Have workers claim two runs ahead, however slow their handlers are."""
    monkeypatch.setattr(Slots, "_ahead", lambda _: 2)


async def test_a_slot_is_free_before_the_end_of_its_run_is_recorded(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, 2)
    async with working(compiled, dsn, concurrency=1):
        first = await gate.next()
        with connection.transaction():
            connection.execute(
                "select from jobspec.job_queue where id = %s for update", [first.run_id]
            )
            gate.open.set()
            await gate.next()
        await until_async(lambda: states(connection) == ["completed"] * 2)


async def test_no_run_is_claimed_while_too_many_ends_wait_for_their_record(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, 2)
    async with working(compiled, dsn, concurrency=1) as at_work:
        at_work._recorder._backlog = 1
        first = await gate.next()
        with connection.transaction():
            connection.execute(
                "select from jobspec.job_queue where id = %s for update", [first.run_id]
            )
            gate.open.set()
            await until_async(lambda: at_work._recorder.full)
            assert await at_work._claim() == 0
            assert gate.entered.empty()
        await until_async(lambda: states(connection) == ["completed"] * 2)


async def test_a_success_that_the_database_refuses_fails_its_run_alone(dsn, connection, caplog):
    send(dsn, job(), 3)
    token, told = uuid4(), Told()
    held = [Held(run.run_id, token) for run in claim(connection, token=token)]
    async with (
        Persistence(dsn, PATIENCE) as database,
        Recorder(SQL, database, told) as recorder,
    ):
        for one, result in zip(held, ("1", "no JSON", "3"), strict=True):
            recorder.record(Completion(*one, result))
    assert states(connection) == ["completed", "failed", "completed"]
    assert told.kept == dict.fromkeys(held, True)
    (dead,) = dead_letters(connection)
    assert dead.reason == "not-retriable"
    assert dead.message.startswith("its result can't be recorded: invalid input syntax for type")
    assert f"run {held[1].run_id}: its end can't be recorded" in caplog.text


async def test_a_success_too_large_for_the_database_is_not_tried_for_ever(dsn, connection):
    """`ProgramLimitExceeded` is an `OperationalError` to psycopg, and no matter of the line."""
    send(dsn, job(), 2)
    token, told = uuid4(), Told()
    held = [Held(run.run_id, token) for run in claim(connection, token=token)]
    refuse(connection, held[0].run_id, "54000")
    async with (
        asyncio.timeout(PATIENCE),
        Persistence(dsn, PATIENCE) as database,
        Recorder(SQL, database, told) as recorder,
    ):
        for one in held:
            recorder.record(Completion(*one, "1"))
    assert states(connection) == ["failed", "completed"]


async def test_a_failure_that_the_database_refuses_is_let_go_alone(dsn, connection, caplog):
    send(dsn, job(), 2)
    token, told = uuid4(), Told()
    held = [Held(run.run_id, token) for run in claim(connection, token=token)]
    refuse(connection, held[0].run_id, "23514", "failed")
    async with (
        asyncio.timeout(PATIENCE),
        Persistence(dsn, PATIENCE) as database,
        Recorder(SQL, database, told) as recorder,
    ):
        for one in held:
            recorder.record(Failure(*one, None, "not-retriable", "no", "{}"))
    assert states(connection) == ["running", "failed"]
    assert told.kept == dict(zip(held, (False, True), strict=True))
    assert f"run {held[0].run_id}: its end can't be recorded" in caplog.text


async def test_ends_are_recorded_after_a_record_that_was_cancelled_before_it_began(dsn, connection):
    send(dsn, job())
    token = uuid4()
    (run,) = claim(connection, token=token)
    end = Completion(run.run_id, token, "1")
    async with (
        asyncio.timeout(PATIENCE),
        Persistence(dsn, PATIENCE) as database,
        Recorder(SQL, database, Told()) as recorder,
    ):
        recorder.record(end)
        recorder._running.cancel()
        await asyncio.wait([recorder._running])
        assert recorder.idle
        recorder.record(end)
    assert states(connection) == ["completed"]


def refuse(connection, run_id, sqlstate, state="completed"):
    """Have the database refuse that a run gets into a state."""
    connection.execute(
        "create function jobspec.refuse() returns trigger language plpgsql as"
        f" $$ begin raise exception 'refused' using errcode = '{sqlstate}'; end $$"
    )
    connection.execute(
        "create trigger refuse before update on jobspec.job_queue for each row"
        f" when (new.id = {run_id} and new.state = '{state}') execute function jobspec.refuse()"
    )


def test_results_are_recorded_in_batches_of_bounded_size(dsn, monkeypatch):
    monkeypatch.setattr(recorder_module, "MOST_CHARACTERS", 10)
    recorder = Recorder(SQL, Persistence(dsn, PATIENCE), pytest.fail)
    results = ["x" * size for size in (20, 5, 5, 1)]
    recorder._waiting.extend(Completion(n, uuid4(), one) for n, one in enumerate(results))
    batches = [[one.run_id for one in recorder._next_batch()] for _ in range(3)]
    assert batches == [[0], [1, 2], [3]]


@pytest.mark.usefixtures("ahead")
async def test_what_was_claimed_ahead_starts_when_a_slot_is_free(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, 4)
    async with working(compiled, dsn, concurrency=1):
        await gate.next()
        await until_async(lambda: states(connection).count("running") == 3)
        assert gate.entered.empty()
        gate.open.set()
        await until_async(lambda: states(connection) == ["completed"] * 4)
    assert {run.attempt for run in runs(connection)} == {1}


@pytest.mark.usefixtures("ahead")
async def test_a_run_sees_no_context_variable_of_the_run_whose_slot_it_takes(dsn, connection):
    variable, seen = ContextVar("variable", default=None), []

    async def handler(context):
        seen.append(variable.get())
        variable.set(context.run_id)

    compiled = job(handler=handler)
    send(dsn, compiled, 4)
    await run_until_idle(compiled, dsn, concurrency=1)
    assert seen == [None] * 4


async def test_a_pass_that_is_left_before_it_began_is_given_back_without_being_one(
    dsn, connection, monkeypatch
):
    started = []

    def start_and_leave(self, entry):
        start(self, entry)
        started.append(entry.leave())

    start = Worker._start
    monkeypatch.setattr(Worker, "_start", start_and_leave)
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled)
    async with working(compiled, dsn) as at_work:
        await until_async(lambda: started)
        at_work.stop()
    assert gate.entered.empty()
    run = run_of(connection)
    assert (run.state, run.attempt, run.passes) == ("pending", 0, 0)


async def test_a_handler_is_entered_before_the_worker_asks_for_what_is_due_next(dsn, monkeypatch):
    did = []

    async def noted(self):
        did.append("asked")
        return 0.01

    async def handler(context):
        did.append("entered")

    monkeypatch.setattr(Worker, "_until_next_due", noted)
    compiled = job(handler=handler)
    send(dsn, compiled)
    async with working(compiled, dsn):
        await until_async(lambda: "asked" in did)
    assert did[:2] == ["entered", "asked"]


async def test_many_runs_take_few_statements(dsn, connection, monkeypatch):
    """The first claim is as wide as the worker, the next take more; a record takes what ended."""
    executed = Counter()

    async def counted(self, call):
        executed[call.query] += 1
        return await fetch_once(self, call)

    fetch_once = Persistence.fetch_once
    monkeypatch.setattr(Persistence, "fetch_once", counted)
    monkeypatch.setattr("jobspec_engine.slots._PATIENCE", 3600)
    compiled, how_many = job(), 5_000
    with Client(compiled, dsn) as client:
        client.send_many([Event("event", {"n": n}) for n in range(how_many)])
    await run_until_idle(compiled, dsn)
    assert states(connection) == ["completed"] * how_many
    claims, completions = (executed[SQL._queries[name]] for name in ("claim", "complete"))
    assert claims <= how_many / 100
    assert completions <= how_many / 100
    assert sum(executed.values()) <= claims + completions + 2  # to reclaim, and to look for crons


@pytest.mark.parametrize(
    ("end", "asked"),
    [
        (Completion(1, UUID(int=1), "null"), False),
        (Suspension(1, UUID(int=1)), True),
        (Failure(1, UUID(int=1), None, "not-retriable", "no", "{}"), True),
    ],
)
def test_a_worker_that_had_all_there_was_asks_again_after_what_may_be_due_again(dsn, end, asked):
    at_work = worker(job(), dsn)
    at_work._sated = ("job",)
    at_work._recorded([end], {1})
    assert at_work._nudge.is_set() == asked
    at_work._sated = ()
    at_work._recorded([end], {1})
    assert at_work._nudge.is_set()


async def test_runs_leave_nothing_to_the_collector_of_cycles(dsn):
    """It would take a third of the time of runs that do nothing."""
    compiled, how_many = job(), 1_000
    with Client(compiled, dsn) as client:
        client.send_many([Event("event", {"n": n}) for n in range(how_many)])
    gc.collect()
    gc.disable()
    try:
        await run_until_idle(compiled, dsn)
        assert gc.collect() < how_many
    finally:
        gc.enable()


@pytest.mark.usefixtures("ahead")
async def test_stop_gives_back_at_once_what_was_claimed_ahead(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, 3)
    async with working(compiled, dsn, concurrency=1) as at_work:
        await gate.next()
        await until_async(lambda: states(connection) == ["running"] * 3)
        at_work.stop()
        await until_async(lambda: states(connection) == ["running", "pending", "pending"])
        given_back = runs(connection)[1:]
        assert [run.attempt for run in given_back] == [0, 0]
        assert [run.run_at for run in given_back] == [run.enqueued_at for run in given_back]
        gate.open.set()
    assert gate.left == ["let through"]


@pytest.mark.usefixtures("ahead")
async def test_what_waits_too_long_for_a_slot_goes_to_a_worker_that_has_one(
    dsn, connection, monkeypatch
):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, 2)
    async with working(compiled, dsn, concurrency=1) as slow:
        await gate.next()
        await until_async(lambda: states(connection) == ["running"] * 2)
        monkeypatch.setattr(Slots, "_ahead", lambda _: 0)
        async with working(compiled, dsn, concurrency=1, name="free"):
            await gate.next()
            assert runs(connection)[1].claimed_by == "free"
            assert slow._slots.held == 1
            gate.open.set()


@pytest.mark.usefixtures("ahead")
async def test_a_run_that_was_claimed_ahead_is_cancelled_without_being_entered(dsn, connection):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, 2)
    async with working(compiled, dsn, concurrency=1):
        await gate.next()
        await until_async(lambda: states(connection) == ["running"] * 2)
        with Client(compiled, dsn) as client:
            client.cancel(runs(connection)[1].id)
        await until_async(lambda: states(connection) == ["running", "cancelled"])
        assert gate.entered.empty()
        gate.open.set()


@pytest.mark.usefixtures("ahead")
async def test_leases_of_what_was_claimed_ahead_are_renewed(dsn, connection, monkeypatch):
    monkeypatch.setattr("jobspec_engine.slots._PATIENCE", 3600)
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, 2)
    async with working(compiled, dsn, concurrency=1) as at_work:
        await gate.next()
        await until_async(lambda: states(connection) == ["running"] * 2)
        lease_until = runs(connection)[1].lease_until
        at_work._keeper.renew_now()
        await until_async(lambda: runs(connection)[1].lease_until > lease_until, "a heartbeat")
        gate.open.set()


async def test_a_worker_holds_no_more_runs_of_a_job_than_its_limit(dsn, connection):
    slow, fast = Gate(), Gate()
    compiled = jobs(
        slow={"event": "slow", "handler": slow}, fast={"event": "fast", "handler": fast}
    )
    send(dsn, compiled, 5, event="slow")
    send(dsn, compiled, 2, event="fast")
    async with working(compiled, dsn, limits={"slow": 2}):
        for gate in (slow, slow, fast, fast):
            await gate.next()
        assert states(connection).count("running") == 4
        slow.open.set()
        await until_async(lambda: states(connection).count("completed") == 5)
        fast.open.set()


async def test_a_job_at_its_limit_does_not_keep_others_from_being_run_in_time(
    dsn, connection, clock
):
    gate = Gate()
    compiled = jobs(
        full={"event": "full", "handler": gate},
        later={"event": "later", "debounce": {"period": "1h"}},
    )
    send(dsn, compiled, 2, event="full")
    send(dsn, compiled, event="later")
    async with working(compiled, dsn, limits={"full": 1}):
        await gate.next()
        clock.advance(3600)
        await until_async(lambda: states(connection)[2] == "completed")
        gate.open.set()


async def test_a_pass_that_breaks_the_engine_costs_no_other_run(
    dsn, connection, monkeypatch, caplog
):
    async def broken(entry, handlers, journal):
        raise AssertionError("broken")

    monkeypatch.setattr("jobspec_engine.worker.attempt", broken)
    compiled = job()
    send(dsn, compiled)
    async with working(compiled, dsn):
        await until_async(lambda: "its pass broke" in caplog.text)
    assert run_of(connection).state == "running"
