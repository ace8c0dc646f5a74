"""Two that work on the same rows, in every order of their statements that locks allow.

Whatever the order, nobody sees an error, and what is left is what one after the other leaves.
"""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from itertools import combinations_with_replacement
from uuid import UUID

import psycopg
import pytest

from enginekit import PULSE, until
from jobspec_engine import Client
from jobspec_engine.calls import drive, fetch
from jobspec_engine.cron import Crons
from jobspec_engine.rows import Completion, Failure, Held
from proof.acts import ACTS, APART, SKIPPING
from proof.pair import LEASE, STEPS, UPKEEP, compiled, forget
from proof.recovery import recover, settled, unfinished
from proof.report import attack

TOKEN = UUID(int=1)
COMMIT, ROLL_BACK = "commit", "rollback"
ENDINGS = [(COMMIT, COMMIT), (ROLL_BACK, COMMIT), (COMMIT, ROLL_BACK)]

# How many orders of a pair are tried where both commit, and where one of them does not; there are
# some hundreds where both have four statements.
MOST = (1000, 100) if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else (3, 1)


class Place:
    """Runs in every state, with all keys, and leases that have run out."""

    def __init__(self, client, connection, clock):
        self.client, self.connection, self.clock = client, connection, clock
        self.jobs = client._jobs
        self.crons = Crons(self.jobs, UPKEEP)

    def lay_out(self):
        """Have a run completed, one dead, some claimed, and bursts and ticks that are due."""
        forget(self.connection)
        self.looks_back = []
        self.clock.set(self.clock.START)
        drive(self.connection, self.crons.watch())
        self.client.send("a", {"once": "p", "key": "q"}, id="e0")
        self.client.send("b", {"once": "p", "key": "q"}, id="e1")
        claim = STEPS.claim(list(self.jobs), 100, LEASE, TOKEN, "w")
        by_job = {row.job_id: Held(row.run_id, TOKEN) for row in fetch(self.connection, claim)}
        self.dead = by_job["once"].run_id
        failure = Failure(*by_job.pop("once"), None, "not-retriable", "m", '"e"')
        fetch(self.connection, STEPS.fail([failure]))
        fetch(self.connection, STEPS.complete([Completion(*by_job.pop("window"), "1")]))
        self.held = list(by_job.values())
        self.clock.advance(2 * LEASE)
        self.due = drive(self.connection, self.crons.watch())

    def left(self, acts, endings):
        """Return what is left when all has come to its end."""
        for act, ending in zip(acts, endings, strict=True):
            if act in SKIPPING and ending == COMMIT:
                drive(self.connection, ACTS[act](self, "c"))
        for call in self.looks_back:
            fetch(self.connection, call)
        recover(self.connection, self.clock, list(self.jobs))
        return settled(self.connection)


class Session:
    """One of the two: it takes one action after the other, a statement or the end of one."""

    def __init__(self, dsn, act, place, side, ending):
        self._connection = psycopg.connect(dsn)
        self._thread = ThreadPoolExecutor(1)
        self._steps = ACTS[act](place, side)
        self._apart = act in APART
        self._ending = ending
        self._rows = None
        self._is_open = self._is_over = False
        self._doing = None

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self._thread.shutdown()
        self._connection.close()

    @property
    def waits(self):
        return self._doing is not None and not self._doing.done()

    def over(self):
        """Tell whether it has nothing more to do; raise what it met."""
        if self._doing is not None and self._doing.done():
            self._doing.result()
            self._doing = None
        return self._doing is None and self._is_over

    def act(self, connection):
        """Take the next action, and return when that is done or waits for a lock."""
        self._doing = self._thread.submit(self._act)
        is_blocked = "select cardinality(pg_blocking_pids(%s)) > 0"
        pid = [self._connection.info.backend_pid]
        until(
            lambda: self._done_soon() or connection.execute(is_blocked, pid).fetchone()[0],
            "an action's end or its wait",
        )

    def _done_soon(self):
        return wait([self._doing], PULSE).done

    def _act(self):
        if self._is_open and self._apart:
            return self._end()
        try:
            call = self._steps.send(self._rows)
        except StopIteration:
            return self._end(last=True)
        self._rows = fetch(self._connection, call)
        self._is_open = True
        return None

    def _end(self, *, last=False):
        self._is_over = last or self._ending == ROLL_BACK
        self._is_open = False
        self._connection.commit() if self._ending == COMMIT else self._connection.rollback()


def meet(place, dsn, acts, endings, prefix):
    """Have two sessions act in an order: return what is left, and who acted at each choice.

    `prefix` says who acts where both can; behind it the one goes on who acted last.
    """
    place.lay_out()
    choices = []
    with (
        Session(dsn, acts[0], place, "a", endings[0]) as one,
        Session(dsn, acts[1], place, "b", endings[1]) as other,
    ):
        while acting := [s for s in (one, other) if not s.over()]:
            free = [session for session in acting if not session.waits]
            if not free:  # the one let the other go on: its answer is on its way
                until(lambda: not (one.waits and other.waits), "the end of a wait")
                continue
            if len(free) == 2:
                choices.append((prefix[len(choices) :] or choices[-1:])[0])
            free[choices[-1] if len(free) == 2 else 0].act(place.connection)
    return place.left(acts, endings), choices


def orders(meeting, most):
    """Take a meeting through its orders, at most so many: yield what each of them left."""
    chance = random.Random(0)
    first = [[0, 1], [1, 0]]  # one does all it does when the other has just begun
    ahead = [[0, 0], [1, 1]]
    for _ in range(most):
        if not (first or ahead):
            return
        prefix = first.pop(0) if first else ahead.pop(chance.randrange(len(ahead)))
        left, choices = meeting(prefix)
        yield choices, left
        ahead += [[*choices[:at], 1 - choices[at]] for at in range(len(prefix), len(choices))]


def one_after_the_other(place, dsn, acts, endings):
    """Return what is left by each order of the two in which none meets the other."""
    kept = [
        (act, side) for act, side, end in zip(acts, "ab", endings, strict=True) if end == COMMIT
    ]
    found = []
    for order in (kept, kept[::-1])[: len(kept)]:
        place.lay_out()
        for act, side in order:
            with Session(dsn, act, place, side, COMMIT) as session:
                while not session.over():
                    session.act(place.connection)
                    until(lambda s=session: not s.waits, "the end of an action")
        found.append(place.left(acts, endings))
    return found


@pytest.fixture
def place(dsn, clock):
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        Client(compiled(), dsn) as client,
    ):
        yield Place(client, connection, clock)


@pytest.fixture(scope="module")
def row():
    with attack("two that meet, in every order that locks allow") as row:
        yield row


@pytest.mark.parametrize(
    "acts",
    # No two come to the same step of a run; its second try is in test_crash_points.py.
    [acts for acts in combinations_with_replacement(ACTS, 2) if acts != ("invoke", "invoke")],
    ids=" and ".join,
)
def test_two_that_meet_leave_what_one_after_the_other_leaves(place, dsn, row, acts):
    for endings in ENDINGS:
        serial = one_after_the_other(place, dsn, acts, endings)
        meeting = partial(meet, place, dsn, acts, endings)
        for order, left in orders(meeting, MOST[ROLL_BACK in endings]):
            row.cases += 1
            row.lost += min((one - left).total() for one in serial)
            row.doubled += min((left - one).total() for one in serial)
            row.stuck += len(unfinished(left))
            assert left in serial, (endings, order, serial[0] - left, left - serial[0])
            assert not unfinished(left)
