"""What two can do that meet: generators of statements, as clients and workers drive them.

Each is given the place and the side that it is on, `a` or `b`.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from uuid import UUID

from jobspec_engine import Event
from jobspec_engine.add_job import add_job
from jobspec_engine.batch import exchange, prepare
from jobspec_engine.cancel import cancel, cancel_by_key
from jobspec_engine.memos import StepCall, StepKey
from jobspec_engine.replay import Replay
from jobspec_engine.retention import Retention, prune
from jobspec_engine.rows import Completion, Failure, Suspension
from jobspec_engine.step_statements import Child, MemoWrite
from proof.pair import LEASE, MAX_REFUNDS, STEPS, UPKEEP

LATER = timedelta(seconds=5)
MOST_LOOKS = 3  # of one who waits; the next comes when the others are through


def send_same_key(place, side):
    event = Event("b", {"once": "p"}, f"once {side}")
    yield from exchange([prepare(event, place.jobs)], STEPS)


def send_same_burst(place, side):
    event = Event("a", {"once": side, "key": "q"}, f"burst {side}")
    yield from exchange([prepare(event, place.jobs)], STEPS)


def add_to_burst(place, side, *, mode, **options):
    """Add a run by the key of the burst: it joins what that has made, or is joined."""
    keyed = {"job_key": "qq", "job_key_mode": mode, **options}
    (told,) = yield add_job(STEPS, place.jobs, "burst", {"by": side}, keyed, wake=False)
    assert told.run_id is not None


def claim_all(place, side):
    yield STEPS.claim(list(place.jobs), 100, LEASE, UUID(int=ord(side)), side)


def heartbeat(place, side):
    yield STEPS.heartbeat(place.held, LEASE)


def complete(place, side):
    yield STEPS.complete(Completion(*one, "1") for one in place.held)


def fail(place, side, *, delay=None):
    reason = "not-retriable" if delay is None else "attempts-used"
    yield STEPS.fail(Failure(*one, delay, reason, "m", '"e"') for one in place.held)


def release(place, side):
    yield STEPS.release(Suspension(*one) for one in place.held)


def reclaim(place, side):
    yield STEPS.reclaim(MAX_REFUNDS, 100)


def begin_waits(place, side):
    """Keep a step of each held run that waits for the event of `send_same_key`."""
    call = StepCall(StepKey("", "wait", 1), "wait", 1)
    waits = (MemoWrite.of(one, call, "waiting") for one in place.held)
    yield STEPS.remember(one._replace(delay=LATER, event_name="b") for one in waits)


def wait_for_answer(place, side):
    """Wait for that event as a handler does, which looks back while sends are under way."""
    held, key = place.held[0], StepKey("", "answer", 1)
    wait = MemoWrite.of(held, StepCall(key, "wait", 1), "waiting")
    yield STEPS.remember([wait._replace(delay=timedelta(hours=1), event_name="b")])
    (senders,) = yield STEPS.senders()
    for _ in range(MOST_LOOKS):
        found = yield STEPS.look_back(held, key, place.clock.now(), [])
        if not (senders and found and found[0].memo.state == "waiting"):
            return
        (others,) = yield STEPS.senders()
        senders = set(senders) & set(others or ())
    place.looks_back.append(STEPS.look_back(held, key, place.clock.now(), []))


def invoke(place, side):
    call = StepCall(StepKey("", "invoke", 1), "invoke", 1)
    yield STEPS.invoke(place.held[0], call, Child("plain", f"child of {side}", "{}", 1))


def replay(place, side):
    yield from Replay(place.jobs, STEPS, {}).send([place.dead])


def prune_all(place, side):
    yield from prune(Retention(LEASE, LEASE, LEASE), UPKEEP)


def cancel_all(place, side):
    yield from cancel(STEPS, [place.dead, *(one.run_id for one in place.held), *range(1, 20)])


def cancel_burst(place, side):
    yield from cancel_by_key(STEPS, "burst", None, "qq")


def pause(place, side):
    yield STEPS.pause("burst")


def tick(place, side):
    yield from place.crons.tick(place.due)


ACTS = {
    "send_same_key": send_same_key,
    "send_same_burst": send_same_burst,
    "add_replacing": partial(add_to_burst, mode="replace"),
    "add_keeping_the_time": partial(add_to_burst, mode="preserve_run_at", delay=LATER),
    "add_keeping_all": partial(add_to_burst, mode="unsafe_dedupe"),
    "add_debounced": partial(add_to_burst, mode="debounce", delay=LATER, max_debounce=2 * LATER),
    "claim": claim_all,
    "heartbeat": heartbeat,
    "complete": complete,
    "fail": fail,
    "fail_and_retry": partial(fail, delay=LATER),
    "release": release,
    "reclaim": reclaim,
    "begin_waits": begin_waits,
    "wait_for_answer": wait_for_answer,
    "invoke": invoke,
    "replay": replay,
    "prune_all": prune_all,
    "cancel": cancel_all,
    "cancel_by_key": cancel_burst,
    "pause": pause,
    "tick": tick,
}

# Those that leave what somebody holds for the next time.
SKIPPING = {"prune_all", "tick"}

# Those each of whose statements is a transaction of its own.
APART = {"prune_all", "cancel_by_key", "wait_for_answer"}
