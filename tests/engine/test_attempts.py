"""Attempts by the clock: when a run is tried again, and what becomes of it at its last."""

from __future__ import annotations

from datetime import timedelta

from enginekit import dead_letters, job, run_of, run_until_idle, send

MINUTE = 60
HOUR = 60 * MINUTE
DEFAULT_WAITS = [15, 30, MINUTE, 2 * MINUTE]  # of the reference, for its five attempts


class Fails:
    """A handler that fails until it was entered `times` times."""

    def __init__(self, times):
        self.times = times
        self.attempts = []

    async def __call__(self, context):
        self.attempts.append((context.attempt, context.max_attempts))
        if len(self.attempts) <= self.times:
            raise ValueError(f"no. {len(self.attempts)}")
        return "at last"


async def test_a_run_is_retried_after_the_waits_of_the_reference_and_then_dead(
    dsn, clock, connection
):
    fails = Fails(99)
    compiled = job(handler=fails)
    send(dsn, compiled)
    waits = []
    while run_of(connection).state == "pending":
        clock.set(run_of(connection).run_at)
        await run_until_idle(compiled, dsn)
        waits.append((run_of(connection).run_at - clock.now()).total_seconds())
    assert waits == [*DEFAULT_WAITS, 0]
    assert fails.attempts == [(n, 5) for n in range(1, 6)]
    run = run_of(connection)
    assert (run.state, run.attempt, run.finished_at) == ("failed", 5, clock.now())
    assert [(one["attempt"], one["error"]) for one in run.errors] == [
        (n, f"ValueError: no. {n}") for n in range(1, 6)
    ]
    (dead,) = dead_letters(connection)
    assert (dead.reason, dead.message) == ("attempts-used", "ValueError: no. 5")
    assert (dead.job_id, dead.run_id, dead.died_at) == ("job", run.id, clock.now())


async def test_a_retry_is_not_before_its_time(dsn, clock, connection):
    fails = Fails(1)
    compiled = job(handler=fails)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    clock.advance(timedelta(seconds=14.999))
    await run_until_idle(compiled, dsn)
    assert len(fails.attempts) == 1
    clock.advance(timedelta(seconds=0.001))
    await run_until_idle(compiled, dsn)
    run = run_of(connection)
    assert (run.state, run.attempt, run.result) == ("completed", 2, "at last")
    assert len(run.errors) == 1
    assert not dead_letters(connection)


async def test_without_retries_the_first_failure_is_the_last(dsn, connection):
    compiled = job(handler=Fails(1), retries=0)
    send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    assert (run_of(connection).state, run_of(connection).max_attempts) == ("failed", 1)


async def test_the_last_of_all_attempts_may_succeed(dsn, clock, connection):
    compiled = job(handler=Fails(2), retries=2)
    send(dsn, compiled)
    for _ in range(3):
        await run_until_idle(compiled, dsn)
        clock.advance(HOUR)
    assert (run_of(connection).state, run_of(connection).attempt) == ("completed", 3)
