"""Workers, Postgres and the pooler struck at random under load: what was sent has ended as it must.

`JOBSPEC_TEST_BLOWS` says how many blows fall, `JOBSPEC_TEST_SEED` which.
"""

from __future__ import annotations

import dataclasses
import os
import random
from collections import Counter

import pytest

from proof.chaos import LEASE, POLL, Chaos
from proof.reckoning import Evidence, Pass, findings, recoveries
from proof.report import attack

BLOWS = int(os.environ.get("JOBSPEC_TEST_BLOWS", "14"))
SEED = int(os.environ.get("JOBSPEC_TEST_SEED") or random.randrange(1 << 32))

# What a machine with other work may add: a reclaim waits for its turn of the processor, too.
MARGIN = 5.0  # seconds


@pytest.fixture(scope="module")
def chaos():
    """A chaos that is over, and what was found then."""
    print(f"seed {SEED}, {BLOWS} blows")  # noqa: T201  so that a failure can be had again
    with Chaos(SEED) as chaos:
        chaos.run(BLOWS)
        chaos.evidence = Evidence.of(chaos.postgres.dsn)
        yield chaos


def found_in(chaos, evidence=None, blows=None):
    passes = Pass.all_of(chaos.witness.lines)
    blows = chaos.blows if blows is None else blows
    ledger = chaos.senders.ledger
    return findings(evidence or chaos.evidence, ledger, passes, blows, chaos.ticks_from)


def said_of(chaos, found):
    """Return what workers said of the runs of some findings."""
    words = [f"run {one.run_id}:" for one in found]
    return [
        line
        for log in chaos.logs
        for line in log.splitlines()
        if any(word in line for word in words)
    ]


def test_every_event_has_ended_as_the_model_says_and_no_run_was_entered_again_without_cause(chaos):
    ledger, blows = chaos.senders.ledger, chaos.blows
    with attack("chaos: kills, restarts, PgBouncer") as row:
        found = found_in(chaos)
        kinds = Counter(one.kind for one in found)
        row.cases = ledger.events
        row.lost, row.doubled, row.stuck = (kinds[kind] for kind in ("lost", "doubled", "stuck"))
        row.longest_recovery = max(recoveries(chaos.evidence, blows), default=0.0)
    print(Counter(blow.kind for blow in blows), ledger, row)  # noqa: T201  what it was
    assert not found, "\n".join([*map(str, [*found, *blows]), *said_of(chaos, found)])
    assert row.longest_recovery <= LEASE + POLL + MARGIN


def test_no_worker_met_an_error_that_it_did_not_expect(chaos):
    assert not [log for log in chaos.logs if "Traceback" in log or "its pass broke" in log]


JOBS = ["plain", "once", "burst", "keyed", "failing", "stepped", "child", "told", "tick"]


@pytest.mark.parametrize("job_id", JOBS)
def test_a_run_that_was_not_there_would_have_been_found(chaos, job_id):
    missing = chaos.evidence.of_job(job_id)[-1]
    left = [run for run in chaos.evidence.runs if run is not missing]
    found = found_in(chaos, dataclasses.replace(chaos.evidence, runs=left))
    assert "lost" in {one.kind for one in found}


@pytest.mark.parametrize("job_id", JOBS)
def test_a_run_too_many_would_have_been_found(chaos, job_id):
    more = [*chaos.evidence.runs, chaos.evidence.of_job(job_id)[-1]]
    assert found_in(chaos, dataclasses.replace(chaos.evidence, runs=more))


def test_a_run_that_had_not_ended_would_have_been_found(chaos):
    runs = chaos.evidence.runs
    waiting = [runs[0]._replace(state="pending", finished_at=None), *runs[1:]]
    found = found_in(chaos, dataclasses.replace(chaos.evidence, runs=waiting))
    assert "stuck" in {one.kind for one in found}


def test_a_handler_entered_again_would_have_been_found_if_nothing_had_been_struck(chaos):
    assert "doubled" in {one.kind for one in found_in(chaos, blows=[])}
