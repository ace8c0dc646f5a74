"""Random sends in random batches against a model of dicts: the answers, and what is left."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from enginekit import claim, jobs, runs
from jobspec_engine import AsyncClient, Event

PERIOD, TIMEOUT = 10, 25  # seconds
DEBOUNCE = {"key": "event.data.key", "period": f"{PERIOD}s", "timeout": f"{TIMEOUT}s"}
OPTIONS = {
    "plain": {},
    "once": {"idempotency": "event.data.once"},
    "burst": {"debounce": DEBOUNCE},
    "both": {"idempotency": "event.data.once", "debounce": DEBOUNCE},
}

few_ids = st.sampled_from([None, None, None, "e1", "e2", "e3"])
few_keys = st.sampled_from(["a", "b", None])


@st.composite
def events(draw):
    keys = {"once": draw(few_keys), "key": draw(few_keys)}
    data = {name: key for name, key in keys.items() if key is not None}
    return Event("event", data, draw(few_ids), draw(st.integers(1, 6)))


steps = st.one_of(
    st.lists(events(), min_size=1, max_size=6),
    st.integers(0, 12),  # seconds that pass
    st.just("claim"),
)


@dataclass
class Run:
    """A run as the model has it."""

    job_id: str
    event_id: str
    ts: int
    run_at: int
    run_by: int | None = None
    events: int = 1
    claimed: bool = False


@dataclass
class Model:
    """The engine in dicts; times in seconds since the start."""

    now: int = 0
    sent: set[str] = field(default_factory=set)
    runs: list[Run] = field(default_factory=list)
    once: dict[tuple[str, str], Run] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    bursts: dict[tuple[str, str], Run] = field(default_factory=dict)

    def send_many(self, batch):
        """Return what becomes of each event for each job: the outcome, and the run if it has one.

        What was sent before is answered by what its runs are after the batch.
        """
        answers = []
        for event, event_id in batch:
            known = event_id in self.sent
            self.sent.add(event_id)
            answers.append(None if known else self.send(event, event_id))
        return [
            answer or {job_id: ("duplicate", self.own_run(job_id, event_id)) for job_id in OPTIONS}
            for answer, (_, event_id) in zip(answers, batch, strict=True)
        ]

    def send(self, event, event_id):
        return {job_id: self.dispatch(job_id, event, event_id) for job_id in OPTIONS}

    def own_run(self, job_id, event_id):
        found = (r for r in self.runs if (r.job_id, r.event_id) == (job_id, event_id))
        return next(found, None)

    def dispatch(self, job_id, event, event_id):
        options, once = OPTIONS[job_id], event.data.get("once")
        deduplicates = "idempotency" in options and once is not None
        if deduplicates:
            self.counts[job_id, once] = self.counts.get((job_id, once), 0) + 1
            if (job_id, once) in self.once:
                return "duplicate", self.once[job_id, once]
        outcome, run = self.enqueue(job_id, event, event_id)
        if deduplicates:
            self.once[job_id, once] = run
        return outcome, run

    def enqueue(self, job_id, event, event_id):
        burst = (job_id, event.data.get("key", "false"))
        if "debounce" not in OPTIONS[job_id]:
            self.runs.append(Run(job_id, event_id, event.ts, self.now))
            return "enqueued", self.runs[-1]
        if burst in self.bursts and not self.bursts[burst].claimed:
            return "coalesced", self.join(self.bursts[burst], event, event_id)
        self.runs.append(Run(job_id, event_id, event.ts, self.now + PERIOD, self.now + TIMEOUT))
        self.bursts[burst] = self.runs[-1]
        return "enqueued", self.runs[-1]

    def join(self, run, event, event_id):
        run.events += 1
        if event.ts >= run.ts:
            run.event_id, run.ts = event_id, event.ts
            run.run_at = min(self.now + PERIOD, run.run_by)
        return run

    def claim(self):
        due = [run for run in self.runs if not run.claimed and run.run_at <= self.now]
        for run in due:
            run.claimed = True
        return due


class Pair:
    """The engine and the model, taken through the same steps."""

    def __init__(self, client, connection, clock):
        self.client, self.connection, self.clock = client, connection, clock
        self.start = clock.now()
        self.model = Model()
        self.ids = {}  # of the engine's runs, by the identity of the model's

    async def step(self, step):
        if step == "claim":
            claimed = {run.run_id for run in claim(self.connection, *OPTIONS)}
            assert claimed == {self.ids[id(run)] for run in self.model.claim()}
        elif isinstance(step, int):
            self.clock.advance(step)
            self.model.now += step
        else:
            await self.send(step)
        self.compare()

    async def send(self, batch):
        sent = await self.client.send_many(batch)
        told = self.model.send_many(
            [(event, one.event_id) for event, one in zip(batch, sent, strict=True)]
        )
        for answer, expected in zip(sent, told, strict=True):
            for one in answer.jobs:
                outcome, run = expected[one.job_id]
                assert one.outcome == outcome
                self.know(run, one.run_id, outcome)
                if outcome != "duplicate":
                    assert one.run_at == self.start + timedelta(seconds=run.run_at)

    def know(self, run, run_id, outcome):
        if outcome == "enqueued":
            self.ids[id(run)] = run_id
        else:
            assert run_id == (run and self.ids[id(run)])

    def compare(self):
        second = timedelta(seconds=1)
        assert sorted(
            (r.id, r.job_id, r.event_id, r.event_ts, (r.run_at - self.start) / second, r.events)
            for r in runs(self.connection)
        ) == sorted(
            (self.ids[id(r)], r.job_id, r.event_id, r.ts, r.run_at, r.events)
            for r in self.model.runs
        )
        used = self.connection.execute("select job_id, key, run_id, events from job_idempotency")
        assert {(job_id, key): (run_id, n) for job_id, key, run_id, n in used} == {
            at: (self.ids[id(run)], self.model.counts[at]) for at, run in self.model.once.items()
        }


def forget(connection):
    connection.execute("delete from job_queue")
    connection.execute("delete from job_event")
    connection.execute("delete from job_idempotency")


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(steps, min_size=1, max_size=12))
def test_random_sends_become_what_the_model_says(dsn, clock, taken):
    async def take():
        compiled = jobs(**{job_id: dict(options) for job_id, options in OPTIONS.items()})
        async with AsyncClient(compiled, dsn) as client:
            pair = Pair(client, connection, clock)
            for step in taken:
                await pair.step(step)

    with psycopg.connect(dsn, autocommit=True, options="-c search_path=jobspec") as connection:
        forget(connection)
        asyncio.run(take())
