"""The count of what a worker holds, on a clock of its own: room, runs claimed ahead, limits."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from jobspec_engine.entry import Entry
from jobspec_engine.errors import WorkerError
from jobspec_engine.rows import Claimed, Held
from jobspec_engine.slots import Room, Slots


class Time:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


def held(run_id):
    return Held(run_id, UUID(int=run_id))


def entry(run_id, job_id="job"):
    run = Claimed(run_id, job_id, 1, 5, "e", "event", "{}", 0, None, timedelta(0), 1)
    return Entry(run, held(run_id))


def take(slots, *run_ids, job_id="job"):
    return [slots.take(entry(run_id, job_id)) for run_id in run_ids]


def room(slots):
    (only,) = slots.rooms()
    return only.runs


def warmed_up(time, concurrency=2, seconds=0.01, ends=10):
    """Return slots whose runs took so many seconds each, and ended just now."""
    slots = Slots(["job"], concurrency, {}, time)
    for number in range(ends):
        take(slots, number)
        slots.end("job", seconds)
    return slots


def test_the_first_runs_are_not_claimed_ahead(time):
    slots = Slots(["job"], 3, {}, time)
    assert room(slots) == 3
    assert take(slots, 1, 2, 3) == [True] * 3
    assert room(slots) == 0


def test_as_many_are_claimed_ahead_as_start_soon_at_the_mean_time_of_a_run(time):
    slots = warmed_up(time, concurrency=2, seconds=0.01)
    take(slots, 100, 101)
    assert room(slots) == 2 * 0.1 / 0.01
    time.now += 0.1
    assert room(slots) == 0


def test_a_few_ends_promise_no_more_than_a_few_times_as_many(time):
    slots = warmed_up(time, concurrency=100, seconds=0.001, ends=10)
    assert room(slots) == 100 + 10 * 8


def test_nothing_is_claimed_ahead_of_slow_runs(time):
    """Runs that all took a minute and ended at once promise no free slot for another minute."""
    slots = warmed_up(time, concurrency=100, seconds=60, ends=100)
    take(slots, *range(200, 300))
    assert room(slots) == 0
    slots = warmed_up(time, concurrency=100, seconds=5, ends=100)
    assert room(slots) == 100 + 2


def test_the_mean_time_follows_the_latest_runs(time):
    slots = warmed_up(time, concurrency=100, seconds=60)
    for number in range(100):
        take(slots, number)
        slots.end("job", 0.01)
    assert room(slots) > 100


def test_what_waits_takes_the_room_of_what_could_be_claimed_ahead(time):
    slots = warmed_up(time, ends=10)
    assert take(slots, 1, 2, 3, 4) == [True, True, False, False]
    assert room(slots) == 20 - 2
    assert slots.held == 4


def test_the_end_of_a_run_starts_the_one_that_waits_longest(time):
    slots = warmed_up(time)
    take(slots, 1, 2, 3, 4)
    assert slots.end("job", 0.01).run.run_id == 3
    assert slots.end("job", 0.01).run.run_id == 4
    assert slots.end("job", 0.01) is None


def test_a_run_that_waited_too_long_is_given_up(time):
    slots = warmed_up(time)
    take(slots, 1, 2, 3)
    assert slots.give_up() == []
    assert slots.patience() == [0.5]
    time.now += 0.5
    assert slots.patience() == [0]
    assert [one.held for one in slots.give_up()] == [held(3)]
    assert slots.patience() == []


def test_all_that_wait_can_be_given_up_at_once(time):
    slots = warmed_up(time)
    take(slots, 1, 2, 3, 4)
    assert [one.run.run_id for one in slots.give_up(everything=True)] == [3, 4]
    assert slots.held == 2


def test_one_that_waits_can_be_withdrawn(time):
    slots = warmed_up(time)
    take(slots, 1, 2, 3, 4)
    assert [one.held for one in slots.withdraw([held(1), held(3)])] == [held(3)]
    assert slots.withdraw([held(3)]) == []
    assert slots.end("job", 0.01).run.run_id == 4


def test_a_job_with_a_limit_is_claimed_by_itself_up_to_it(time):
    slots = Slots(["a", "b", "c"], 10, {"b": 2}, time)
    assert set(slots.rooms()) == {Room(("a", "c"), 10), Room(("b",), 2)}
    take(slots, 1, 2, job_id="b")
    assert set(slots.rooms()) == {Room(("a", "c"), 8), Room(("b",), 0)}
    slots.end("b", 0.01)
    assert Room(("b",), 1) in set(slots.rooms())


def test_what_was_given_up_no_longer_counts_for_its_limit(time):
    slots = Slots(["a", "b"], 1, {"b": 2}, time)
    take(slots, 1, 2, job_id="b")
    assert Room(("b",), 0) in set(slots.rooms())
    slots.give_up(everything=True)
    slots.end("b", 60)
    assert Room(("b",), 1) in set(slots.rooms())


def test_jobs_take_turns_in_being_claimed_first(time):
    slots = Slots(["a", "b"], 1, {"b": 1}, time)
    firsts = [next(slots.rooms()).job_ids for _ in range(4)]
    assert sorted(firsts[:2]) == [("a",), ("b",)]
    assert firsts[:2] == firsts[2:]


@pytest.mark.parametrize("limits", [{"other": 1}, {"job": 0}])
def test_a_limit_that_can_not_be_meant_is_refused(limits):
    with pytest.raises(WorkerError, match=r"other|at least 1"):
        Slots(["job"], 1, limits)
