"""The engine and its model, taken through the same steps: they tell the same, and hold the same."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import uuid4

import jobspec
from enginekit import nothing
from jobspec import Registry
from jobspec_engine import Event
from jobspec_engine.calls import drive, fetch
from jobspec_engine.cron import Crons
from jobspec_engine.memos import StepCall, StepKey
from jobspec_engine.retention import Retention, prune
from jobspec_engine.rows import Completion, Failure, Held, Suspension
from jobspec_engine.step_statements import Child, MemoWrite, StepStatements
from jobspec_engine.upkeep_statements import UpkeepStatements
from proof.entities import Memo
from proof.model import Model
from proof.tables import adopt, differences, held_by_engine, held_by_model

STEPS = StepStatements()
UPKEEP = UpkeepStatements()
LEASE = timedelta(seconds=30)
MAX_REFUNDS = 1

ONCE, TWICE = "event.data.once", "event.data.once + event.data.once"
BURST = {"key": "event.data.key + event.data.key", "period": "10s", "timeout": "25s"}
OPTIONS = {
    # `a` and `b` start several jobs each; `+` of two truths is an error, of none is absent.
    "plain": {"triggers": ["a", "b"]},
    "once": {"triggers": ["a"], "idempotency": TWICE},
    "burst": {"triggers": ["a"], "debounce": BURST},
    "both": {
        "triggers": ["a"],
        "idempotency": ONCE,
        "debounce": {"key": "event.data.key", "period": "10s"},
    },
    "window": {"triggers": ["b"], "idempotency": {"key": ONCE, "window": "20s"}},
    "active": {"triggers": ["b"], "idempotency": {"key": ONCE, "window": "while-active"}},
    "calm": {
        "triggers": ["b"],
        "idempotency": {"key": ONCE, "window": "while-active"},
        "debounce": BURST,
    },
    # Ticks further apart than one may be late; and those of which one waits while one is at work.
    "skip": {"triggers": [{"cron": "*/3 * * * *"}]},
    "late": {"triggers": [{"cron": "*/3 * * * *", "missed": "once"}]},
    "every": {"triggers": [{"cron": "* * * * *", "missed": "all"}]},
    "alone": {
        "triggers": [{"cron": "*/2 * * * *", "missed": "all"}],
        "idempotency": {"key": "event.data.cron", "window": "while-active"},
    },
}


def compiled():
    """Return the jobs: one for each way in which keys and triggers decide."""
    registry = Registry()
    for job_id, options in OPTIONS.items():
        registry.job(id=job_id, retries=1, **options)(nothing)
    return jobspec.compile(registry)


def forget(connection):
    """Empty the tables, children before those that they name; the first run will be 1 again."""
    for table in ("dead_letter", "queue", "event", "dispatch", "idempotency", "cron", "pause"):
        connection.execute(f"delete from jobspec.job_{table}")  # noqa: S608
    connection.execute("select setval('jobspec.job_queue_id_seq', 1, false)")


class Pair:
    """Both of them. Every call is made to both, and what they tell is compared."""

    def __init__(self, jobs, client, connection, clock):
        self.jobs, self.client, self.connection, self.clock = jobs, client, connection, clock
        self.model = Model(jobs, clock.now())
        self.crons = Crons(jobs, UPKEEP)
        self.clock_is_right = True  # false: it may be put back
        self.passes = []  # a run of the model and the token of a claim, the latest first

    def compare(self):
        """Hold the tables to the model, row by row."""
        held = held_by_engine(self.connection)
        adopt(self.model, held)
        expected = held_by_model(self.model)
        assert held == expected, differences(held, expected)

    def advance(self, seconds):
        self.model.now = self.clock.advance(seconds)

    def send(self, events):
        """Send some events as one: the model takes them one after the other."""
        sent = self.client.send_many(events)
        again = [e.id in self.model.events or e in events[:n] for n, e in enumerate(events)]
        told = [self.model.send(e.id, e.name, e.data, e.ts) for e in events]
        self.compare()
        for one, event, known, expected in zip(sent, events, again, told, strict=True):
            # What was sent before is answered by what its runs are when all are sent.
            now = self.model.send(event.id, event.name, event.data) if known else expected
            answer = {job.job_id: (job.outcome, job.run_id) for job in one.jobs}
            promised = {job_id: (outcome, run and run.id) for job_id, (outcome, run) in now.items()}
            assert answer == promised, (answer, promised)

    def add_job(self, job_id, payload, key, mode, **options):
        before = set(self.model.events)
        keyed = {"job_key": key, "job_key_mode": mode} if key else {}
        told = self.client.add_job(job_id, payload, **keyed, **options)
        rows = self.connection.execute("select id from jobspec.job_event").fetchall()
        (event_id,) = {id_ for (id_,) in rows} - before
        outcome, run = self.model.add_job(event_id, job_id, payload, key, mode, **options)
        self.compare()
        assert (told.outcome, told.run_id, told.run_at) == (outcome, run.id, run.run_at)

    def claim(self, limit):
        token = uuid4()
        rows = fetch(self.connection, STEPS.claim(list(self.jobs), limit, LEASE, token, "w"))
        first = {row.run_id for row in rows}
        claimed = self.model.claim(list(self.jobs), limit, LEASE, token, first)
        told = [(row.run_id, row.attempt, row.event_id, json.loads(row.event_data)) for row in rows]
        promised = [(run.id, run.attempt, run.event.told_id, run.event.data) for run in claimed]
        assert sorted(told) == sorted(promised), (told, promised)
        self.passes = [(run, token) for run in claimed] + self.passes

    def heartbeat(self, held):
        told = fetch(self.connection, STEPS.heartbeat([_held(one) for one in held], LEASE))
        expected = {one: self.model.heartbeat(*one, LEASE) for one in held}
        assert {(row.run_id, row.lease_token, row.cancel_requested) for row in told} == {
            (run.id, token, asked) for (run, token), asked in expected.items() if asked is not None
        }

    def complete(self, held):
        told = fetch(self.connection, STEPS.complete(Completion(*_held(one), "1") for one in held))
        assert sorted(told) == sorted(
            run.id for run, token in held if self.model.complete(run, token)
        )

    def fail(self, held, delay, reason, finish):
        failures = [Failure(*_held(one), delay, reason, "m", '"e"', finish=finish) for one in held]
        told = fetch(self.connection, STEPS.fail(failures))
        assert sorted(told) == sorted(
            run.id for run, token in held if self.model.fail(run, token, delay, reason, finish)
        )

    def release(self, held, wait, finish, *, entered):
        wake_at = None if wait is None else self.model.now + wait
        given = [Suspension(*_held(one), wake_at, finish, entered) for one in held]
        told = fetch(self.connection, STEPS.release(given))
        assert sorted(row.run_id for row in told) == sorted(
            run.id
            for run, token in held
            if self.model.release(run, token, wake_at, finish, entered=entered)
        )

    def reclaim(self):
        told = fetch(self.connection, STEPS.reclaim(MAX_REFUNDS, 1000))
        expected = {(run.id, run.state) for run in self.model.reclaim(MAX_REFUNDS)}
        assert set(told) == expected

    def wait_for_event(self, held, name, timeout):
        self.remember(held, Memo("wait", "waiting", None, self.model.now + timeout, name))

    def remember(self, held, memo):
        """Keep a step, of its kind's name; its second call comes to a memo that is there."""
        call = StepCall(StepKey("", memo.kind, 1), memo.kind, 1)
        write = MemoWrite.of(_held(held), call, memo.state)._replace(
            wake_at=memo.wake_at, event_name=memo.event_name
        )
        told = fetch(self.connection, STEPS.remember([write]))
        kept = self.model.remember(*held, memo.kind, memo)
        assert [row.memo.state for row in told] == ([kept.state] if kept else [])

    def invoke(self, held, job_id, event_id):
        call = StepCall(StepKey("", "invoke", 1), "invoke", 1)
        child = Child(job_id, event_id, "{}", self.jobs[job_id].retries + 1)
        told = fetch(self.connection, STEPS.invoke(_held(held), call, child))
        kept = self.model.invoke(*held, "invoke", job_id, event_id)
        assert [row.memo.state for row in told] == ([kept.state] if kept else [])

    def cancel(self, run):
        assert self.client.cancel(run.id).outcome == self.model.cancel(run)

    def cancel_by_key(self, job_id, once, burst):
        told = self.client.cancel_by_key(job_id, idempotency_key=once, job_key=burst)
        expected = self.model.cancel_by_key(job_id, once, burst)
        assert dict(told) == {run.id: outcome for run, outcome in expected.items()}

    def replay(self, run):
        told = self.client.replay(run.id)
        outcome, new = self.model.replay(run)
        self.compare()
        assert (told.outcome, told.replayed_as) == (outcome, new and new.id)

    def pause(self, job_id):
        assert self.client.pause(job_id) is (job_id not in self.model.paused)
        self.model.paused.add(job_id)

    def resume(self, job_id):
        assert self.client.resume(job_id) is (job_id in self.model.paused)
        self.model.paused.discard(job_id)

    def tick(self, just_paused=None):
        """Do what a worker does about cron at a poll; a job may be paused when it has looked."""
        keys = drive(self.connection, self.crons.watch())
        if just_paused:
            self.pause(just_paused)
        with self.connection.transaction():
            drive(self.connection, self.crons.tick(keys))
        self.model.tick()

    def prune(self, age):
        drive(self.connection, prune(Retention(age, age, age, batch=3), UPKEEP))
        left = [] if self.clock_is_right else held_by_engine(self.connection)["runs"]
        self.model.prune(age, {run.id for run in left})

    def run_down(self):
        """Have workers do all that is left, and hold every run to have ended."""
        for job_id in list(self.model.paused):
            self.resume(job_id)
        for _ in range(4 * len(self.model.runs) + 4):
            if not any(run.alive for run in self.model.runs):
                break
            self.advance(366 * 24 * 3600)
            self.reclaim()
            self.claim(1000)
            self.complete(self.passes)
            self.compare()
        assert not [run for run in self.model.runs if run.alive]


def event(name, data, event_id, ts=None):
    return Event(name, data, event_id, ts)


def _held(held):
    run, token = held
    return Held(run.id, token)
