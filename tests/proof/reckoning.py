"""What must have become of what was sent, and what is found: each difference is a finding."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import psycopg
from psycopg.rows import namedtuple_row

MINUTE = timedelta(minutes=1)
GONE = "the worker died or froze: its lease ran out"  # what a history says of a reclaim
MOST_ATTEMPTS = 4  # of `failing`
AFTERMATH = (
    5.0  # seconds until workers are at work again, after a pause between two tries or a start
)


class Finding(NamedTuple):
    """Something that must not be. `kind` is `lost`, `doubled`, `stuck` or `wrong`."""

    kind: str
    what: str
    run_id: int | None = None


@dataclass
class Evidence:
    """The tables, as they are when all is over."""

    runs: list
    events: dict
    dispatches: list
    used_keys: dict
    dead_letters: dict
    memos: dict
    ticked_until: object

    @classmethod
    def of(cls, dsn):
        with psycopg.connect(dsn, row_factory=namedtuple_row) as connection:

            def rows(query):
                return connection.execute(query).fetchall()

            ((ticked_until,),) = rows("select ticked_until from jobspec.job_cron")
            return cls(
                runs=rows("select * from jobspec.job_queue order by id"),
                events={one.id: one for one in rows("select * from jobspec.job_event")},
                dispatches=rows("select * from jobspec.job_dispatch"),
                used_keys={one.key: one for one in rows("select * from jobspec.job_idempotency")},
                dead_letters=dict(rows("select run_id, reason from jobspec.job_dead_letter")),
                memos={
                    (one.run_id, one.name): one.result
                    for one in rows("select * from jobspec.job_step where state = 'done'")
                },
                ticked_until=ticked_until,
            )

    def of_job(self, job_id):
        return [run for run in self.runs if run.job_id == job_id]


@dataclass
class Pass:
    """One entry into a handler, as its handler told of it."""

    run: int
    job: str
    attempt: int
    number: int
    process: int
    began: float
    left_by: str | None = None  # the error that left it; None: it ended well, or never
    ended: bool = False
    steps: dict = field(default_factory=dict)

    @classmethod
    def all_of(cls, lines):
        """Return the passes that a witness tells of, by run, in the order of their claims."""
        passes = {}
        for line in lines:
            key = tuple(line[what] for what in ("run", "job", "attempt", "number", "process"))
            match line["what"]:
                case "began":
                    passes[key] = cls(*key, line["at"])
                case "step":
                    passes[key].steps[line["step"]] = line["number_drawn"]
                case "left":
                    passes[key].left_by = line["by"]
                case _:
                    passes[key].ended = True
        by_run = defaultdict(list)
        for one in sorted(passes.values(), key=lambda one: (one.attempt, one.number)):
            by_run[one.run].append(one)
        return by_run


def findings(evidence, ledger, passes, blows, ticks_from):
    """Return all that is not as it must be."""
    return [
        *unfinished(evidence),
        *unwitnessed(evidence, passes),
        *one_run_each(evidence, ledger, "plain"),
        *one_run_each(evidence, ledger, "failing"),
        *one_run_each(evidence, ledger, "stepped"),
        *failures(evidence, ledger),
        *keys_used_once(evidence, ledger),
        *bursts(evidence, ledger),
        *keyed(evidence, ledger),
        *steps(evidence, passes),
        *ticks(evidence, ticks_from),
        *again_without_cause(passes, blows),
    ]


def unfinished(evidence):
    for run in evidence.runs:
        expected = "failed" if run.id in evidence.dead_letters else "completed"
        if run.state != expected:
            kind = "wrong" if run.finished_at else "stuck"
            yield Finding(kind, f"run {run.id} of {run.job_id} is {run.state}, not {expected}")


def unwitnessed(evidence, passes):
    for run in evidence.runs:
        if run.state == "completed" and not any(one.ended for one in passes.get(run.id, ())):
            yield Finding("lost", f"run {run.id} completed, and its handler never ended")


def one_run_each(evidence, ledger, kind):
    made = Counter(run.event_id for run in evidence.of_job(kind))
    for event_id in ledger.sent[kind].keys() | made.keys():
        if made[event_id] != (event_id in ledger.sent[kind]):
            word = "doubled" if made[event_id] else "lost"
            yield Finding(word, f"event {event_id} has {made[event_id]} runs")


def failures(evidence, ledger):
    for run in evidence.of_job("failing"):
        planned = ledger.sent["failing"].get(run.event_id, {"failures": 0})["failures"]
        expected = (
            min(planned + 1, MOST_ATTEMPTS),
            "attempts-used" if planned >= MOST_ATTEMPTS else None,
        )
        found = run.attempt, evidence.dead_letters.get(run.id)
        if found != expected:
            yield Finding("wrong", f"run {run.id}, {planned} failures: {found}, not {expected}")


def keys_used_once(evidence, ledger):
    sent = Counter(data["key"] for data in ledger.sent["once"].values())
    made = Counter(evidence.events[run.event_id].data["key"] for run in evidence.of_job("once"))
    for key, events in sent.items():
        if made[key] != 1:
            yield Finding("doubled" if made[key] else "lost", f"key {key} made {made[key]} runs")
        if evidence.used_keys[key].events != events:
            counted = evidence.used_keys[key].events
            yield Finding("wrong", f"key {key} counted {counted} of {events} events")


def bursts(evidence, ledger):
    """Hold each event of a burst to stand in one run, which carries the latest of its events."""
    told = {one.event_id: one.run_id for one in evidence.dispatches if one.job_id == "burst"}
    stands_for = defaultdict(list)
    for event_id in ledger.sent["burst"]:
        if event_id in told:
            stands_for[told[event_id]].append(evidence.events[event_id])
        else:
            yield Finding("lost", f"nothing is told of event {event_id}")
    counted = sum(run.events for run in evidence.of_job("burst"))
    if counted > len(told):
        yield Finding("doubled", f"{len(told)} events of bursts are counted as {counted}")
    for run_id in stands_for.keys() - {run.id for run in evidence.of_job("burst")}:
        yield Finding("lost", f"run {run_id}, of which events are told, is not there")
    for run in evidence.of_job("burst"):
        events = stands_for.get(run.id, [])
        if run.events != len(events):
            yield Finding("wrong", f"run {run.id} counts {run.events} of {len(events)} events")
        latest = max((one.ts for one in events), default=None)
        if evidence.events[run.event_id].ts != latest:
            yield Finding("lost", f"run {run.id} does not carry the latest of its events")


def keyed(evidence, ledger):
    """Hold added runs to stand for all calls, and the last one of a key to carry the last."""
    runs = defaultdict(list)
    for run in evidence.of_job("keyed"):
        runs[run.debounce_key].append(run)
    counted = sum(run.events for run in evidence.of_job("keyed"))
    told = sum(one.job_id == "keyed" for one in evidence.dispatches)
    if counted != told:
        yield Finding("wrong", f"{told} calls with job keys are counted as {counted}")
    for key, added in ledger.added.items():
        events = sum(run.events for run in runs[key])
        tried = len(ledger.tried[key])
        if not len(added) <= events <= tried:
            kind = "lost" if events < len(added) else "doubled"
            yield Finding(kind, f"job key {key}: {len(added)}..{tried} calls, {events} counted")
        carried = [evidence.events[run.event_id].data["n"] for run in runs[key]]
        if carried != sorted(carried) or carried[-1:] != added[-1:]:
            yield Finding("lost", f"job key {key}: {added[-1]} was added last, ran: {carried}")


def steps(evidence, passes):
    """Hold results to the memos that were kept, and what steps start to be started once."""
    children = Counter(run.parent_run_id for run in evidence.of_job("child"))
    told = Counter(evidence.events[run.event_id].data["run"] for run in evidence.of_job("told"))
    for run in evidence.of_job("stepped"):
        first, second = (evidence.memos.get((run.id, name)) for name in ("first", "second"))
        n = evidence.events[run.event_id].data["n"]
        if run.result != [first, 2 * n, second]:
            yield Finding("wrong", f"run {run.id} returned {run.result}, not what its steps did")
        drawn = {number for one in passes[run.id] for number in one.steps.values()}
        if not {first, second} <= drawn:
            yield Finding("wrong", f"run {run.id} has memos that no step returned")
        for what, counted in (("children", children), ("events", told)):
            if counted[run.id] != 1:
                kind = "doubled" if counted[run.id] else "lost"
                yield Finding(kind, f"run {run.id} started {counted[run.id]} {what}")


def ticks(evidence, since):
    first = since.astimezone(UTC).replace(second=0, microsecond=0) + MINUTE
    expected = int((evidence.ticked_until - first) / MINUTE) + 1
    made = Counter(run.event_id for run in evidence.of_job("tick"))
    if len(made) != expected or sum(made.values()) != expected:
        kind = "lost" if len(made) < expected else "doubled"
        yield Finding(kind, f"{expected} ticks since {since}, and {sum(made.values())} runs")


def again_without_cause(passes, blows):
    """Find handlers and steps that were entered again, though nothing hit their process."""
    for of_run in passes.values():
        for one, again in pairwise(of_run):
            planned = _is_planned(one, again) and not one.steps.keys() & again.steps.keys()
            if not (planned or any(_explains(blow, one, again) for blow in blows)):
                yield Finding("doubled", f"{one} was followed by {again}", one.run)


def _is_planned(one, again):
    if one.left_by == "PlannedError":
        return again.attempt == one.attempt + 1
    # It gave its slot back: what the handler awaited was cancelled.
    return one.job == "stepped" and one.left_by in ("Suspended", "CancelledError")


def _explains(blow, one, again):
    """Tell whether a blow hit a process between its pass and the next one of the same run."""
    hit = not blow.processes or one.process in blow.processes
    return hit and one.began <= blow.ended and blow.began <= again.began


def recoveries(evidence, blows):
    """Return the seconds from the death of a worker to the reclaim of each of its runs.

    Only where Postgres and other workers were there all the time.
    """
    deaths = {
        process: blow.began
        for blow in blows
        for process in blow.processes
        if blow.kind in ("kill a worker", "freeze a worker")
    }
    outages = [blow for blow in blows if not blow.processes or blow.kind == "kill all workers"]
    entries = [entry for run in evidence.runs for entry in run.errors if entry["error"] == GONE]
    for entry in entries:
        died = deaths.get(int(entry["worker"].rpartition(":")[2]))
        claimed, reclaimed = (_seconds(entry[when]) for when in ("started_at", "ended_at"))
        if died is None or not claimed <= died <= reclaimed:
            continue
        if not any(died <= one.ended + AFTERMATH and one.began <= reclaimed for one in outages):
            yield reclaimed - died


def _seconds(text):
    return datetime.fromisoformat(text).timestamp()
