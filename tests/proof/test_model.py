"""Everything that can be asked of the engine, in any order, against the model of it."""

from __future__ import annotations

import os
import sys
from datetime import timedelta

import psycopg
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from jobspec_engine import Client
from proof.entities import Memo
from proof.pair import OPTIONS, Pair, compiled, event, forget
from proof.report import attack

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
SETTINGS = settings(
    max_examples=3000 if THOROUGH else 100,
    stateful_step_count=80 if THOROUGH else 50,
    suppress_health_check=list(HealthCheck),
    deadline=None,
    report_multiple_bugs=False,
)

job_ids = st.sampled_from(list(OPTIONS))
scheduled = st.sampled_from([id_ for id_, one in OPTIONS.items() if "cron" in str(one["triggers"])])
values = st.sampled_from([None, "p", "q", True])  # twice true is a key error
which = st.integers(0, 40)
seconds = st.sampled_from([0, 1, 5, 10, 20, 30, 31, 61]).map(lambda s: timedelta(seconds=s))
maybe_seconds = st.none() | seconds
absences = st.sampled_from([60, 61, 150, 240, 250]).map(lambda s: timedelta(seconds=s))
reasons = st.sampled_from(["attempts-used", "not-retriable", "finish-timeout", "step-drift"])
sends = st.tuples(
    st.sampled_from(["a", "b"]),
    values,
    values,
    st.none() | st.integers(1, 3),
    st.none() | which,
)


class Machine(RuleBasedStateMachine):
    """One step of anybody at a time, and time that moves in between."""

    def __init__(self, pair, row):
        super().__init__()
        self.pair = pair
        self.model = pair.model
        self.row = row
        self.sent = []

    @initialize(
        batch=st.lists(sends, min_size=2, max_size=3),
        limit=st.integers(0, 5),
        with_a_clock_that_is_right=st.booleans(),
    )
    def begin(self, batch, limit, with_a_clock_that_is_right):
        """Have runs there, some of them claimed: without any, little can go wrong."""
        self.pair.clock_is_right = with_a_clock_that_is_right
        self.send(batch)
        self.pair.claim(limit)

    @invariant()
    def the_tables_hold_what_the_model_says(self):
        self.row.cases += 1
        self.pair.compare()

    def teardown(self):
        if sys.exc_info()[0] is None:  # a fault that was found is the one to tell
            self.pair.run_down()

    @rule(batch=st.lists(sends, min_size=1, max_size=3))
    def send(self, batch):
        self.pair.send([self.event(*one) for one in batch])

    def event(self, name, once, key, ts, again):
        """Return an event: one that was sent before, or a new one."""
        if again is not None and self.sent:
            return self.sent[again % len(self.sent)]
        data = {"once": once, "key": key}
        data = {field: value for field, value in data.items() if value is not None}
        new = event(name, data, f"e{len(self.sent)}", ts)
        self.sent.append(new)
        return new

    @rule(
        job_id=st.sampled_from(["plain", "burst", "burst"]),
        key=st.sampled_from([None, "pp", "pp", "qq"]),  # those of `burst` for its events, too
        mode=st.sampled_from(["replace", "debounce", "preserve_run_at", "unsafe_dedupe"]),
        delay=st.sampled_from([0, 5, 40]),
        priority=st.integers(-1, 1),
        attempts=st.integers(1, 3),
    )
    def add_job(self, job_id, key, mode, delay, priority, attempts):
        options = {
            "delay": timedelta(seconds=delay),
            "priority": priority,
            "max_attempts": attempts,
        }
        if key and mode == "debounce":
            options["max_debounce"] = timedelta(seconds=12)
        self.pair.add_job(job_id, {"delay": delay}, key, mode, **options)

    @rule(by=seconds)
    def move_the_clock(self, by):
        self.pair.advance(by)

    @precondition(lambda self: not self.pair.clock_is_right)
    @rule(by=seconds)
    def put_the_clock_back(self, by):
        self.pair.advance(-by)

    @rule(limit=st.integers(1, 5))
    def claim(self, limit):
        self.pair.claim(limit)

    @precondition(lambda self: self.pair.passes)
    @rule(first=which, how_many=st.integers(1, 3))
    def heartbeat(self, first, how_many):
        self.pair.heartbeat(self.some_passes(first, how_many))

    @precondition(lambda self: self.pair.passes)
    @rule(first=which, how_many=st.integers(1, 3))
    def complete(self, first, how_many):
        self.pair.complete(self.some_passes(first, how_many))

    @precondition(lambda self: self.pair.passes)
    @rule(first=which, how_many=st.integers(1, 2), delay=seconds, finish=maybe_seconds)
    def fail_and_retry(self, first, how_many, delay, finish):
        held = [one for one in self.some_passes(first, how_many) if one[0].has_attempts_left]
        self.pair.fail(held, delay, "attempts-used", finish)

    @precondition(lambda self: self.pair.passes)
    @rule(first=which, how_many=st.integers(1, 2), reason=reasons)
    def fail_for_good(self, first, how_many, reason):
        self.pair.fail(self.some_passes(first, how_many), None, reason, None)

    @precondition(lambda self: self.pair.passes)
    @rule(first=which, wait=maybe_seconds, finish=maybe_seconds, entered=st.booleans())
    def release(self, first, wait, finish, entered):
        self.pair.release(self.some_passes(first, 1), wait, finish, entered=entered)

    @rule()
    def reclaim(self):
        self.pair.reclaim()

    @precondition(lambda self: self.pair.passes)
    @rule(limit=st.integers(1, 5))
    def crash(self, limit):
        """Workers die: leases run out, others have their runs, and what is left of them wakes."""
        frozen = list(self.pair.passes)
        self.pair.advance(timedelta(seconds=31))
        self.pair.reclaim()
        self.pair.claim(limit)
        for told in (self.pair.complete, self.pair.heartbeat):
            told(frozen)

    @precondition(lambda self: self.pair.passes)
    @rule(first=which, name=st.sampled_from("ab"), timeout=seconds, sent=st.none() | sends)
    def wait_for_event(self, first, name, timeout, sent):
        """A step waits for an event, which may come before its run has given its slot back."""
        (held,) = self.some_passes(first, 1)
        self.pair.wait_for_event(held, name, timeout)
        if sent:
            self.send([sent])
            self.pair.release([held], timeout, None, entered=True)

    @precondition(lambda self: self.pair.passes)
    @rule(first=which, kind=st.sampled_from(["run", "wait"]))
    def finish_a_step(self, first, kind):
        (held,) = self.some_passes(first, 1)
        run, _ = held
        waits = kind == "wait" and run.memos.get("wait")
        done = Memo("wait", "done", event_name=waits.event_name) if waits else Memo("run", "done")
        self.pair.remember(held, done)

    @precondition(lambda self: self.pair.passes)
    @rule(first=which, job_id=job_ids)
    def invoke(self, first, job_id):
        (held,) = self.some_passes(first, 1)
        self.pair.invoke(held, job_id, f"invoked-{self.row.cases}")

    def some_passes(self, first, how_many):
        """Return the latest passes and, less often, those whose lease was lost long ago."""
        passes = self.pair.passes
        first = first % len(passes)
        return passes[first : first + how_many]

    @precondition(lambda self: self.model.runs)
    @rule(number=which)
    def cancel(self, number):
        self.pair.cancel(self.run(number))

    @precondition(lambda self: self.model.keys)
    @rule(which_of_them=which)
    def cancel_by_idempotency_key(self, which_of_them):
        used = list(self.model.keys)
        job_id, key = used[which_of_them % len(used)]
        self.pair.cancel_by_key(job_id, key, None)

    @precondition(lambda self: self.model.runs)
    @rule(number=which)
    def cancel_by_job_key(self, number):
        run = self.run(number)
        self.pair.cancel_by_key(run.job_id, None, run.burst or "of nobody")

    @precondition(lambda self: self.model.runs)
    @rule(number=which)
    def replay(self, number):
        self.pair.replay(self.run(number))

    @precondition(lambda self: self.pair.passes)
    @rule(first=which, job_id=job_ids)
    def go_on_after_drift(self, first, job_id):
        """A handler was changed under a run that has memos and waits for another one."""
        (held,) = self.some_passes(first, 1)
        self.pair.remember(held, Memo("run", "done"))
        self.pair.invoke(held, job_id, f"invoked-{self.row.cases}")
        self.pair.fail([held], None, "step-drift", None)
        if held[0] in self.model.runs:
            self.pair.replay(held[0])

    @precondition(lambda self: self.model.runs)
    @rule(number=which)
    def replay_twice(self, number):
        run = self.run(number)
        self.pair.replay(run)
        self.pair.replay(run)

    def run(self, number):
        return self.model.runs[-1 - number % len(self.model.runs)]

    @precondition(lambda self: self.model.runs)
    @rule(number=which)
    def pause(self, number):
        self.pair.pause(self.run(number).job_id)

    @precondition(lambda self: self.model.paused)
    @rule(which_of_them=which)
    def resume(self, which_of_them):
        paused = sorted(self.model.paused)
        self.pair.resume(paused[which_of_them % len(paused)])

    @rule()
    def tick(self):
        self.pair.tick()

    @rule(by=absences)
    def miss_ticks(self, by):
        """Nobody polls for a while after schedules were seen."""
        self.pair.tick()
        self.pair.advance(by)
        self.pair.tick()

    @rule(job_id=scheduled, by=absences)
    def rest(self, job_id, by):
        """A job is paused just when ticks of it are to be sent, and goes on a little later."""
        self.pair.tick()
        self.pair.advance(by)
        self.pair.tick(just_paused=job_id)
        self.pair.compare()
        self.pair.resume(job_id)
        self.pair.tick()

    @rule(age=seconds)
    def prune(self, age):
        self.pair.prune(age)


def test_whatever_is_asked_of_the_engine_it_does_what_the_model_says(dsn, clock):
    jobs = compiled()
    with (
        Client(jobs, dsn) as client,
        psycopg.connect(dsn, autocommit=True) as connection,
        attack("anything in any order, against the model") as row,
    ):

        def machine():
            forget(connection)
            clock.set(clock.START)
            return Machine(Pair(jobs, client, connection, clock), row)

        run_state_machine_as_test(machine, settings=SETTINGS)
