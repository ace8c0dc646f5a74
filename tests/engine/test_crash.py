"""Real worker processes, killed, frozen and cut off in the middle of a run."""

from __future__ import annotations

import os
import signal
import tempfile
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from databases import PythonProcess
from enginekit import (
    PATIENCE,
    SQL,
    blocked,
    claim,
    count,
    dead_letters,
    job,
    run_of,
    run_until_idle,
    runs,
    until,
    until_async,
    working,
)
from jobspec_engine import Client, EmbeddedPostgres
from jobspec_engine.calls import fetch
from jobspec_engine.migrate import migrate
from jobspec_engine.rows import Completion

LEASE = timedelta(milliseconds=600)

WORKER = """
import asyncio, os, signal, sys
from datetime import timedelta
from pathlib import Path
import jobspec
from jobspec_engine import Worker

registry = jobspec.Registry()

@registry.job(id="job", triggers=["event"], retries=0)
async def handler(context):
    print("entered as", context.attempt)
    try:
        told = await asyncio.get_running_loop().run_in_executor(None, input)
    except asyncio.CancelledError:
        print("cancelled")
        raise
    if told == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if told == "block":
        print("blocking", input())
    return told

worker = Worker(
    jobspec.compile(registry),
    sys.argv[1],
    lease=timedelta(milliseconds=int(sys.argv[2])),
    poll=timedelta(milliseconds=20),
    max_refunds=1,
)
asyncio.run(worker.run(until_idle=True))
print("idle")
"""


def worker_process(dsn, lease=LEASE):
    return PythonProcess(WORKER, dsn, int(lease.total_seconds() * 1000))


def send(dsn, compiled=None):
    with Client(compiled or job(), dsn) as client:
        return client.send("event", {}).jobs[0]


def reclaim(connection):
    return [one.state for one in fetch(connection, SQL.reclaim(5, 100))]


def kill(worker):
    worker.process.kill()
    worker.process.wait(PATIENCE)


async def test_a_run_whose_worker_was_killed_runs_again_with_its_attempt_unused_and_completes_once(
    dsn, clock, connection
):
    seen = []

    async def handler(context):
        seen.append(context.attempt)
        return "second"

    send(dsn)
    with worker_process(dsn) as worker:
        worker.expect("entered as 1")
        kill(worker)
    compiled = job(handler=handler)
    await run_until_idle(compiled, dsn)
    assert (seen, run_of(connection).state) == ([], "running")
    clock.advance(LEASE + timedelta(milliseconds=1))
    await run_until_idle(compiled, dsn)
    await run_until_idle(compiled, dsn)
    run = run_of(connection)
    assert seen == [1]
    assert (run.state, run.attempt, run.refunds, run.result) == ("completed", 1, 1, "second")
    assert not dead_letters(connection)


def test_a_worker_killed_while_it_completes_a_run_leaves_it_completed_or_to_be_run_again(
    dsn, clock, connection
):
    """Its statement had been sent, so the server ends it: nothing is half done."""
    send(dsn)
    with worker_process(dsn) as worker:
        worker.expect("entered as 1")
        with psycopg.connect(dsn) as holding:
            holding.execute("select from jobspec.job_queue for update")
            worker.tell("done")
            until(lambda: blocked(connection), "the completion's wait")
            kill(worker)
    until(lambda: run_of(connection).state == "completed", "the completion")
    clock.advance(2 * LEASE)
    assert reclaim(connection) == []
    assert run_of(connection).result == "done"


def test_a_handler_that_blocks_its_process_for_longer_than_the_lease_keeps_it(dsn, connection):
    send(dsn)
    with worker_process(dsn) as worker:
        worker.expect("entered as 1")
        worker.tell("block")
        first = run_of(connection).lease_until
        until(lambda: run_of(connection).lease_until >= first + 2 * LEASE, "the renewals")
        assert reclaim(connection) == []
        worker.tell("no more")
        assert "blocking no more\nidle" in worker.end()
    assert (run_of(connection).state, run_of(connection).attempt) == ("completed", 1)


def test_a_frozen_worker_whose_run_was_taken_does_nothing_more_to_it(dsn, clock, connection):
    send(dsn)
    with worker_process(dsn) as worker:
        worker.expect("entered as 1")
        os.kill(worker.process.pid, signal.SIGSTOP)
        clock.advance(60)
        assert reclaim(connection) == ["pending"]
        (run,) = claim(connection, token=(token := uuid4()), lease=timedelta(hours=1))
        held = run_of(connection)
        os.kill(worker.process.pid, signal.SIGCONT)
        worker.expect("cancelled")
        worker.tell("a thread still reads")
        worker.expect("idle")
        worker.end()
    assert run_of(connection) == held
    assert fetch(connection, SQL.complete([Completion(run.run_id, token, "2")])) == [run.run_id]


def test_a_frozen_worker_whose_run_was_not_taken_goes_on_with_it(dsn, clock, connection):
    send(dsn)
    with worker_process(dsn) as worker:
        worker.expect("entered as 1")
        os.kill(worker.process.pid, signal.SIGSTOP)
        worker.tell("done")
        os.kill(worker.process.pid, signal.SIGCONT)
        worker.expect("idle")
        worker.end()
    assert (run_of(connection).state, run_of(connection).result) == ("completed", "done")


def test_a_run_that_kills_every_worker_ends_as_a_dead_letter(dsn, clock, connection):
    send(dsn, job(retries=0))
    for _ in range(2):
        with worker_process(dsn) as worker:
            worker.expect("entered as 1")
            worker.tell("die")
            worker.process.wait(PATIENCE)
        clock.advance(2 * LEASE)
    with worker_process(dsn) as worker:
        worker.expect("idle")
        worker.end()
    (dead,) = dead_letters(connection)
    assert (dead.reason, run_of(connection).state) == ("crash-loop", "failed")
    assert count(connection, "job_queue") == 1


def test_a_sender_killed_in_the_middle_of_its_transaction_leaves_nothing(dsn, connection):
    sender = (
        "import sys, psycopg, jobspec\n"
        "from jobspec_engine import Client\n"
        "registry = jobspec.Registry()\n"
        "registry.job(id='job', triggers=['event'], idempotency='event.data.key',"
        " debounce={'period': '1m'})(print)\n"
        "with Client(jobspec.compile(registry), sys.argv[1]) as client,"
        " psycopg.connect(sys.argv[1]) as connection:\n"
        "    client.send('event', {'key': 1}, connection=connection)\n"
        "    print('sent')\n"
        "    input()\n"
    )
    with PythonProcess(sender, dsn) as sending:
        sending.expect("sent")
        kill(sending)
    options = {"idempotency": "event.data.key", "debounce": {"period": "1m"}}
    with Client(job(**options), dsn) as client:
        (sent,) = client.send("event", {"key": 1}).jobs
    assert sent.outcome == "enqueued"
    assert run_of(connection).id == sent.run_id


@pytest.fixture
def server_folder():
    """A folder for a server of one's own."""
    with tempfile.TemporaryDirectory(prefix="jobspec-restart-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        yield folder


async def test_a_worker_survives_a_restart_of_the_server(server_folder):
    def server():
        bin_dir = os.environ.get("JOBSPEC_TEST_PG_BIN")
        return EmbeddedPostgres(server_folder, {"fsync": "off"}, bin_dir)

    async def completed(dsn, how_many):
        send(dsn, compiled)
        with psycopg.connect(dsn, autocommit=True) as connection:
            states = ["completed"] * how_many
            await until_async(lambda: [run.state for run in runs(connection)] == states)

    compiled = job()
    async with AsyncExitStack() as at_the_end:
        with server() as first:
            dsn = first.dsn
            migrate(dsn)
            await at_the_end.enter_async_context(working(compiled, dsn))
            await completed(dsn, 1)
        with server() as second:
            assert second.dsn == dsn
            await completed(dsn, 2)
            await at_the_end.pop_all().aclose()
