"""Several workers, several sets of jobs, and what workers log."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import sys
from collections import Counter
from contextlib import suppress
from datetime import timedelta

import pytest

from databases import PythonProcess
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
from jobspec_engine import Client, Event, Worker
from jobspec_engine.cli.logs import JsonFormatter
from jobspec_engine.errors import WorkerError

PEERS = """
import sys, asyncio
sys.path[:0] = sys.argv[2].split(":")
from enginekit import job
from jobspec_engine import Worker

def meet():
    print("has runs"); input()

async def all_have_runs():
    await asyncio.to_thread(meet)

meeting = None

async def handler(context):
    global meeting
    meeting = meeting or asyncio.create_task(all_have_runs())
    await meeting
    return context.event.data["n"]

worker = Worker(job(handler=handler), sys.argv[1], concurrency=5, name=sys.argv[3])
asyncio.run(worker.run(until_idle=True))
"""


def test_workers_in_many_processes_share_the_runs_and_none_runs_twice(dsn, connection):
    with Client(job(), dsn) as client:
        client.send_many([Event("event", {"n": n}) for n in range(600)])
    names = ("one", "two", "three")
    processes = [PythonProcess(PEERS, dsn, ":".join(sys.path), name) for name in names]
    for process in processes:
        process.expect("has runs")
    for process in processes:
        process.tell()
    for process in processes:
        process.end()
    done = runs(connection)
    assert Counter(run.result for run in done) == Counter(range(600))
    assert {(run.state, run.attempt, run.refunds) for run in done} == {("completed", 1, 0)}
    assert {run.claimed_by for run in done} == set(names)


async def test_one_worker_runs_several_sets_of_jobs(dsn, connection):
    sets = job("mail", event="mail"), job("order", event="order")
    for compiled, event in zip(sets, ("mail", "order"), strict=True):
        with Client(compiled, dsn) as client:
            client.send(event, {})
    await run_until_idle(sets, dsn)
    assert {run.job_id: run.state for run in runs(connection)} == {
        "mail": "completed",
        "order": "completed",
    }


async def test_workers_of_two_sets_leave_each_other_s_runs(dsn, connection):
    mail, order = Gate(), Gate()
    sets = job("mail", event="mail", handler=mail), job("order", event="order", handler=order)
    for compiled, event in zip(sets, ("mail", "order"), strict=True):
        with Client(compiled, dsn) as client:
            client.send_many([Event(event, {})] * 3)
    async with working(sets[0], dsn, name="mail"), working(sets[1], dsn, name="order"):
        mail.open.set()
        order.open.set()
        await until_async(lambda: {run.state for run in runs(connection)} == {"completed"})
    assert {(run.job_id, run.claimed_by) for run in runs(connection)} == {
        ("mail", "mail"),
        ("order", "order"),
    }


def test_sets_that_have_a_job_in_common_are_refused(dsn):
    with pytest.raises(WorkerError, match="more than one set of jobs has `mail`"):
        Worker([job("mail"), job("order"), job("mail")], dsn)


async def test_a_log_record_tells_of_which_run_it_is(dsn, connection, caplog):
    async def handler(context):
        raise ValueError("no such order")

    compiled = job(handler=handler)
    with Client(compiled, dsn) as client:
        client.send("event", {})
    await run_until_idle(compiled, dsn, name="me")
    (record,) = [one for one in caplog.records if " failed, the next is" in one.getMessage()]
    line = json.loads(JsonFormatter().format(record))
    about = {"worker": "me", "run_id": run_of(connection).id, "job_id": "job", "attempt": 1}
    assert {name: line[name] for name in about} == about
    assert (line["level"], line["logger"]) == ("warning", "jobspec_engine.worker")
    assert "no such order" in line["message"]


def test_a_log_record_is_one_line_with_its_error():
    try:
        int("broken")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "two\nlines", (), sys.exc_info())
    text = JsonFormatter().format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert line["message"] == "two\nlines"
    assert "ValueError: invalid literal" in line["error"]


async def test_an_event_that_a_step_sends_is_run_at_once(dsn, connection):
    heard = asyncio.Event()

    async def sends(context):
        await context.step.send_event("done", {})
        await asyncio.wait_for(heard.wait(), PATIENCE)

    async def hears(context):
        heard.set()

    compiled = jobs(sends={"handler": sends}, hears={"event": "done", "handler": hears})
    async with working(compiled, dsn, poll=timedelta(hours=1)):
        await until_async(lambda: count(connection, "job_worker") == 1, "the worker")
        send(dsn, compiled)
        await until_async(lambda: {run.state for run in runs(connection)} == {"completed"})
    assert [run.job_id for run in runs(connection)] == ["sends", "hears"]


async def test_a_handler_that_ends_on_demand_is_left_to_clean_up(dsn, connection):
    entered, cleaning, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()
    cleaned = []

    async def handler(context):
        try:
            entered.set()
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await may_end.wait()
            cleaned.append(context.run_id)

    compiled = job(handler=handler)
    send(dsn, compiled)
    stopped = worker(compiled, dsn)
    task = asyncio.create_task(stopped.run())
    await asyncio.wait_for(entered.wait(), PATIENCE)
    stopped.stop(now=True)
    await asyncio.wait_for(cleaning.wait(), PATIENCE)
    stopped.stop(now=True)  # a second one interrupts no cleaning up
    may_end.set()
    await asyncio.wait_for(task, PATIENCE)
    assert cleaned == [run_of(connection).id]


@pytest.mark.parametrize("at", range(3))
async def test_a_cancellation_that_is_lost_on_its_way_ends_a_worker_all_the_same(dsn, at):
    """`wait_for` may lose one before Python 3.12, whichever statement it comes in."""
    reached, calls = asyncio.Event(), itertools.count()
    at_work = worker(job(), dsn, poll=timedelta(hours=1))
    fetch = at_work._database.fetch

    async def losing(call):
        if asyncio.current_task() is task and next(calls) == at:
            reached.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        return await fetch(call)

    at_work._database.fetch = losing
    task = asyncio.create_task(at_work.run())
    await asyncio.wait_for(reached.wait(), PATIENCE)
    task.cancel()
    await asyncio.wait([task], timeout=PATIENCE)
    assert task.cancelled()


async def test_a_worker_that_is_cancelled_is_seen_no_more(dsn, connection):
    at_work = asyncio.create_task(worker(job(), dsn).run())
    await until_async(lambda: count(connection, "job_worker") == 1)
    at_work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(at_work, PATIENCE)
    assert count(connection, "job_worker") == 0
