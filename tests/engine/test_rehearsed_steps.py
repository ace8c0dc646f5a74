"""The testing kit and steps: functions that stand in, workers that die at a chosen step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel

from enginekit import job
from jobspec_engine.testing import Rehearsal


class Container(BaseModel):
    id: str
    booted_at: datetime


class Provider:
    """What a supervisor calls; it notes what was done."""

    def __init__(self):
        self.done = []

    async def boot(self, key) -> Container:
        self.done.append(f"boot {key}")
        return Container(id=key, booted_at=datetime(2026, 1, 1, tzinfo=UTC))

    def tear_down(self, container_id):
        self.done.append(f"tear down {container_id}")


def supervisor(provider):
    passes = []

    async def supervise(context):
        passes.append((context.attempt, context.pass_number))
        container = await context.step.run("boot", provider.boot, "key")
        await context.step.sleep("watch", timedelta(hours=1))
        await context.step.run("tear down", provider.tear_down, container.id)
        return container.booted_at.year

    return job(handler=supervise, retries=0), passes


def test_a_stepped_job_runs_to_its_end_on_a_moved_clock(rehearse):
    compiled, passes = supervisor(provider := Provider())
    rehearsal = rehearse(compiled)
    rehearsal.send("event", {})
    start = rehearsal.clock.now()
    rehearsal.run_to_the_end()
    assert rehearsal.clock.now() == start + timedelta(hours=1)
    assert (provider.done, passes) == (["boot key", "tear down key"], [(1, 1), (1, 2)])


def test_a_step_calls_the_function_that_stands_in(rehearse):
    compiled, _ = supervisor(provider := Provider())
    rehearsal = rehearse(compiled)
    booted_at = datetime(2020, 1, 1, tzinfo=UTC)
    rehearsal.replace_step("boot", lambda key: Container(id=f"{key}!", booted_at=booted_at))
    rehearsal.send("event", {})
    rehearsal.run_to_the_end()
    (run,) = rehearsal.runs()
    assert (run.state, run.result, provider.done) == ("completed", 2020, ["tear down key!"])


@pytest.mark.parametrize(
    ("step", "after", "done"),
    [
        ("boot", False, ["boot key", "tear down key"]),
        ("boot", True, ["boot key", "boot key", "tear down key"]),
        ("tear down", False, ["boot key", "tear down key"]),
        ("tear down", True, ["boot key", "tear down key", "tear down key"]),
    ],
)
def test_a_worker_dies_at_the_step_that_is_chosen(rehearse, step, after, done):
    compiled, passes = supervisor(provider := Provider())
    rehearsal = rehearse(compiled)
    rehearsal.kill_at_step(step, after=after)
    rehearsal.send("event", {})
    rehearsal.run_to_the_end()
    (run,) = rehearsal.runs()
    assert (run.state, run.attempt, provider.done) == ("completed", 1, done)
    assert passes == [(1, 1), (1, 2), (1, 3)]


@pytest.fixture
def rehearsal(jobspec_dsn, jobspec_clock):
    compiled, _ = supervisor(Provider())
    return Rehearsal(compiled, jobspec_dsn, jobspec_clock)


def test_a_worker_that_was_to_die_at_a_step_that_no_run_came_to_is_told(rehearsal):
    def rehearsed():
        with rehearsal:
            rehearsal.kill_at_step("bot")
            rehearsal.send("event", {})
            rehearsal.run_to_the_end()

    with pytest.raises(AssertionError, match=r"came to the step `bot`.*: `boot`, `tear down`$"):
        rehearsed()


def test_what_a_test_fails_of_is_not_hidden_by_a_death_that_never_came(rehearsal):
    def rehearsed():
        with rehearsal:
            rehearsal.kill_at_step("boot")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rehearsed()


def test_a_dead_worker_does_no_other_step(rehearse):
    done = []

    async def handler(context):
        try:
            await context.step.run("a", done.append, "a")
        finally:
            await context.step.run("b", done.append, "b")

    rehearsal = rehearse(job(handler=handler))
    rehearsal.kill_at_step("a")
    rehearsal.send("event", {})
    rehearsal.run_to_the_end()
    assert done == ["a", "b"]
