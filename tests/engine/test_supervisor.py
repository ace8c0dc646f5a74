"""The supervisor example, its worker lost at every await and every statement in turn."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from databases import PythonProcess
from enginekit import PATIENCE, run_of, until
from examples.supervisor.calls import request
from examples.supervisor.supervise import jobs
from jobspec_engine import Client
from killing import LEASE
from proof.report import attack

REPOSITORY = Path(__file__).parents[2]
ALL = os.environ.get("JOBSPEC_TEST_KILLS") == "all"
WHOLE_LIFE = ["slot taken", "booted", "torn down", "slot released"]
PAUSE = {"pause": 0.001}
BOOT_LIMIT = 60


class Provider:
    """The example's provider, in a process of its own."""

    def __init__(self, process):
        self._process = process
        self.address = process.process.stdout.readline().strip()

    def control(self, **attributes):
        self._ask("PUT", "/control", attributes)

    def done(self, key):
        return [what for what, of in self._ask("GET", "/log")["log"] if of == key]

    def reads(self, key):
        return self._ask("GET", "/log")["reads"].get(key, 0)

    def asked(self, key):
        return self._ask("GET", "/log")["asked"][key]

    def _ask(self, *what):
        status, value = asyncio.run(request(self.address, *what))
        assert status == 200
        return value


class Mother:
    """A process that forks workers, which are lost at points that are asked for."""

    def __init__(self, dsn):
        self._dsn = dsn
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "killing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(REPOSITORY)])},
        )
        self._next()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()

    def points(self):
        """Let a worker do all that is due; return the points that it passed."""
        what, passed = self._tell(self._dsn, 0, signal.SIGKILL)
        assert what == "ended"
        return passed

    def kill_at(self, point):
        """Let a worker do what is due until it is killed; return where, None if it was not."""
        what, passed = self._tell(self._dsn, point, signal.SIGKILL)
        return passed[-1] if what == "killed" else None

    def freeze_at(self, point):
        """Let a worker do what is due until it is frozen; return its process."""
        what, pid = self._tell(self._dsn, point, signal.SIGSTOP)
        assert what == "frozen"
        return pid

    def thaw(self, pid):
        """Let a frozen worker go on, to its end."""
        os.kill(pid, signal.SIGCONT)
        assert self._tell(None, pid, 0)[0] == "ended"

    def _tell(self, *what):
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return self._next()

    def _next(self):
        line = self._process.stdout.readline()
        assert line, "the mother process has died"
        return json.loads(line)


@pytest.fixture
def provider():
    serve = "from examples.supervisor.provider import main; main()"
    with PythonProcess(serve, cwd=REPOSITORY) as process:
        yield Provider(process)


@pytest.fixture
def mother(dsn):
    with Mother(dsn) as mother:
        yield mother


@pytest.fixture
def supervised(dsn, provider, connection):
    """Return a function that asks for one more container, and returns its key."""
    with Client(jobs(), dsn) as client:

        def ask(key, **limits):
            data = {"provider": provider.address, "limits": {**PAUSE, **limits}}
            client.send("container.requested", data, id=key)
            return key

        yield ask


@pytest.fixture
def row():
    """The row of the proof's table that tells how often a worker was lost."""
    with attack("supervisor: lost at every point") as row:
        yield row


def run_for(connection, key):
    return connection.execute(
        "select state, attempt, refunds, result, id from jobspec.job_queue where event_id = %s",
        [key],
    ).fetchone()


def each(points):
    """Return the numbers of points to try: all of them, or some where the full run is asked for."""
    return range(1, len(points) + 1)


def sample(points, step):
    """Return some of the points, spread evenly; all of them in the full run."""
    return each(points)[:: 1 if ALL else step]


def test_the_points_are_each_statement_and_each_await_of_the_job(supervised, mother):
    supervised("key")
    points = mother.points()
    awaits = {what.split()[1] for what in points if what.startswith(("await", "resume"))}
    statements = [what for what in points if what.startswith(("before", "after"))]
    assert {"request", "watch", "answer"} <= awaits
    assert statements == [
        "after claim",
        *("before memos", "after memos"),
        *5 * ("before remember_one", "after remember_one"),
        *("before complete", "after complete"),
    ]
    assert len(points) > 60


def test_a_worker_may_be_killed_anywhere(supervised, provider, mother, clock, connection, row):
    """Also if the provider can't be read just after: a failed read reaches no verdict."""
    supervised("reference")
    points = mother.points()
    for point in each(points):
        key = supervised(f"killed at {point}", boot=BOOT_LIMIT)
        told = point, mother.kill_at(point)
        assert told[1] == points[point - 1], told
        clock.advance(2 * LEASE)
        provider.control(unreadable=2)
        mother.points()
        provider.control(unreadable=0)
        state, attempt, refunds, result, run_id = run_for(connection, key)
        assert provider.done(key) == WHOLE_LIFE, told
        assert provider.asked(key) <= len(WHOLE_LIFE) + 1, told  # a step with a memo is not done
        assert (state, attempt, result) == ("completed", 1, "done"), told
        assert refunds == (told[1] != "after complete"), told
        steps = connection.execute(
            "select count(*), count(distinct name) from jobspec.job_step where run_id = %s",
            [run_id],
        ).fetchone()
        assert steps == (5, 5), told
        row.cases += 1


def test_a_worker_may_be_killed_twice_in_a_row(
    supervised, provider, mother, clock, connection, row
):
    supervised("reference")
    points = mother.points()
    for point in sample(points, 2):
        key = supervised(f"killed at {point}")
        mother.kill_at(point)
        clock.advance(2 * LEASE)
        again = mother.kill_at(1 + point * 7 % len(points))
        clock.advance(2 * LEASE)
        mother.points()
        state, attempt, refunds, result, _ = run_for(connection, key)
        assert provider.done(key) == WHOLE_LIFE, (point, again)
        assert provider.asked(key) <= len(WHOLE_LIFE) + 2, (point, again)
        assert (state, attempt, result) == ("completed", 1, "done"), (point, again)
        assert refunds <= 2
        row.cases += 1


def test_a_deadline_is_measured_from_the_boot_and_not_from_the_restart(
    supervised, provider, mother, clock, connection
):
    provider.control(ready_after=10**6, done_after=10**6)
    key = supervised("reference", boot=0)
    points = mother.points()
    assert run_for(connection, key)[3] == "boot-deadline"
    booted = [n for n in each(points) if points[n - 1] == "after remember_one"][1]
    for number, point in enumerate(range(booted, booted + 24, 1 if ALL else 4), 1):
        key = supervised(f"killed at {point}", boot=BOOT_LIMIT)
        assert mother.kill_at(point)
        clock.advance(2 * LEASE)
        reads = provider.reads(key)
        provider.control(ahead=number * BOOT_LIMIT, unreadable=1)
        mother.points()
        assert run_for(connection, key)[3] == "boot-deadline"
        assert provider.reads(key) == reads + 2, "one that failed, and the one that told"
        assert provider.done(key) == WHOLE_LIFE


def test_a_worker_that_was_frozen_past_its_lease_does_nothing_more(
    supervised, provider, mother, clock, connection, row
):
    supervised("reference")
    points = mother.points()
    writes = [point for point in each(points) if points[point - 1].startswith("before")]
    for batch in _batches(sorted({*writes, *sample(points, 3)}), 20):
        frozen = []
        for point in batch:
            key = supervised(f"frozen at {point}")
            frozen.append((key, mother.freeze_at(point)))
        since = time.monotonic()
        until(
            lambda since=since: time.monotonic() > since + LEASE.total_seconds(), "the lease's end"
        )
        clock.advance(2 * LEASE)
        mother.points()
        before = _everything(connection), [provider.done(key) for key, _ in frozen]
        clock.advance(1)  # so that each write would show
        for _, pid in frozen:
            mother.thaw(pid)
        assert (_everything(connection), [provider.done(key) for key, _ in frozen]) == before
        for key, _ in frozen:
            assert provider.done(key) == WHOLE_LIFE
            assert run_for(connection, key)[:4:3] == ("completed", "done")
        row.cases += len(frozen)


def _batches(items, size):
    return [items[at : at + size] for at in range(0, len(items), size)]


def _everything(connection):
    runs = connection.execute("select * from jobspec.job_queue order by id").fetchall()
    steps = connection.execute("select * from jobspec.job_step order by revision").fetchall()
    return str((runs, steps))


# What the provider may do


def test_a_full_provider_is_asked_again_for_a_slot(supervised, provider, mother, clock, connection):
    provider.control(capacity=0)
    key = supervised("key")
    mother.points()
    assert run_of(connection).state == "pending"
    provider.control(capacity=1)
    clock.advance(timedelta(minutes=1))
    mother.points()
    assert (run_for(connection, key)[3], provider.done(key)) == ("done", WHOLE_LIFE)


def test_a_boot_that_fails_is_tried_again(supervised, provider, mother, clock, connection):
    provider.control(failing_boots=1)
    key = supervised("key")
    mother.points()
    assert (run_for(connection, key)[3], provider.done(key)) == ("done", WHOLE_LIFE)


def test_a_provider_that_is_slow_or_never_readable_ends_with_the_age_of_the_container(
    supervised, provider, mother, connection
):
    provider.control(unreadable=10**6, slow=0.1)
    key = supervised("key", age=0.5)
    mother.points()
    assert (run_for(connection, key)[3], provider.done(key)) == ("too-old", WHOLE_LIFE)
