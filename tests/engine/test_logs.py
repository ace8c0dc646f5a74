"""What a worker logs: each thing once, in a line that says of which run, and what is next."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time
from datetime import timedelta

from enginekit import PATIENCE, SQL, Gate, job, run_of, run_until_idle, send, until_async, working
from jobspec_engine import Client, RetryAfter
from jobspec_engine.persistence import Persistence


async def fails(context):
    raise ValueError("no money\non the account")


async def waits(context):
    raise RetryAfter(context.event.data and timedelta(seconds=90), "later")


async def lines_of(dsn, caplog, data=None, **options):
    """Run one run, and return what was logged of it."""
    caplog.set_level(logging.DEBUG, "jobspec_engine")
    compiled = job(**options)
    send(dsn, compiled, data or {})
    await run_until_idle(compiled, dsn)
    return [one for one in caplog.messages if one.startswith("run ")]


async def test_a_failed_attempt_tells_the_job_which_it_is_and_when_the_next_is(dsn, caplog):
    retry = {"policy": "fixed", "delay": "30s"}
    (line,) = await lines_of(dsn, caplog, handler=fails, retry=retry, retries=4)
    assert line == (
        "run 1: job job, attempt 1 of 5 failed, the next is in 30 s:"
        " ValueError: no money on the account"
    )


async def test_a_failed_attempt_tells_that_no_other_follows(dsn, caplog):
    (line,) = await lines_of(dsn, caplog, handler=fails, retries=0)
    assert line.startswith(
        "run 1: job job, attempt 1 of 1 failed, and there is no further one (attempts-used): Val"
    )


async def test_a_failed_attempt_tells_the_wait_that_its_handler_asked_for(dsn, caplog):
    (line,) = await lines_of(dsn, caplog, {"n": 1}, handler=waits)
    assert "failed, the next is in 90 s: " in line


async def test_a_completed_run_is_told_for_who_looks_closely(dsn, caplog):
    (line,) = await lines_of(dsn, caplog)
    assert line == "run 1: job job, attempt 1 of 5 completed"
    assert [one.levelno for one in caplog.records if one.message == line] == [logging.DEBUG]


async def test_a_run_that_is_asked_to_end_is_told(dsn, connection, caplog):
    caplog.set_level(logging.INFO, "jobspec_engine")
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, {})
    async with working(compiled, dsn):
        context = await gate.next()
        with Client(compiled, dsn) as client:
            client.cancel(context.run_id)
        await until_async(lambda: run_of(connection).state == "cancelled")
    assert "run 1: asked to end, its pass is cancelled" in caplog.messages


async def test_a_lease_that_was_lost_is_told_of_a_run_at_work(dsn, connection, caplog):
    gate = Gate()
    compiled = job(handler=gate)
    send(dsn, compiled, {})
    async with working(compiled, dsn, lease=timedelta(milliseconds=500), poll=timedelta(hours=1)):
        await gate.next()
        connection.execute("update jobspec.job_queue set lease_token = gen_random_uuid()")
        await until_async(lambda: gate.left, "the end of the pass")
    assert (
        "run 1: job job, attempt 1 of 5 is ended: its lease was lost, another worker has it"
        in caplog.messages
    )


async def test_no_lost_lease_is_told_of_a_run_whose_end_was_recorded(dsn, connection, caplog):
    """As where a renewal begins before the end is recorded, and looks after it."""
    gate = Gate()
    gate.open.set()
    compiled = job(handler=gate)
    send(dsn, compiled, {})
    token = []
    async with working(compiled, dsn) as at_work:
        hold = at_work._keeper.hold
        at_work._keeper.hold = lambda held, since: hold(token.extend(held) or held, since)
        await until_async(lambda: run_of(connection).state == "completed", "the end of the run")
        await until_async(lambda: not at_work._keeper._renewed_at, "the worker to know")
        at_work._keeper.hold = hold
        hold(token, time.monotonic())  # as if the worker had not got to it yet
        at_work._keeper.renew_now()
        await until_async(lambda: not at_work._keeper._renewed_at, "the renewal")
    assert [one for one in caplog.messages if one.startswith("run ")] == []


async def test_an_outage_is_told_once_a_step_whatever_waits(caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nowhere = f"postgresql://postgres@127.0.0.1:{taken.getsockname()[1]}/postgres"
        async with Persistence(nowhere, PATIENCE) as database:
            database._pool.timeout = 0.05
            waiting = [asyncio.create_task(database.fetch(SQL.wake())) for _ in range(5)]
            await until_async(lambda: "try 4 in" in caplog.text, "a fourth try")
            database.give_up()
            await asyncio.wait(waiting)
            assert all(one.exception() for one in waiting)
    tries = re.findall(r"can't be reached, try (\d+) in", caplog.text)
    assert tries == [str(number) for number in range(2, 2 + len(tries))]
    assert caplog.text.count("error connecting in") == 1
