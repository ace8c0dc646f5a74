"""What `jobspec run` tells of a run's steps: how far it came, and what it waits for."""

from __future__ import annotations

import json
from datetime import timedelta

from clikit import jobspec
from enginekit import jobs, run_of, run_until_idle, runs
from jobspec_engine.errors import StepFailed
from stepkit import run, send

HOUR = timedelta(hours=1)


def fails():
    raise ValueError("no paper\nin the printer")


async def waits(context):
    for page in ("1", "2"):
        await context.step.run("print", str, page)
    try:
        await context.step.run("bind", fails)
    except StepFailed:
        await context.step.wait_for_event("parcel/delivered", timeout=HOUR)


def shown_steps(run_id):
    lines = jobspec("run", str(run_id)).stdout.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("step "))
    return lines[at:]


async def test_a_run_that_waits_shows_its_steps_and_what_it_waits_for(
    dsn, on_this_database, connection
):
    await run(dsn, waits)
    headings, first, second, failed, waiting = shown_steps(run_of(connection).id)
    assert headings.split() == ["step", "kind", "state", "failures", "recorded", "why"]
    assert first.startswith("print  ")
    assert second.startswith("print, call 2  ")
    assert failed.split()[:4] == ["bind", "run", "failed", "1"]
    assert failed.rstrip().endswith("ValueError: no paper")
    assert waiting.split()[:3] == ["parcel/delivered", "wait", "waiting"]
    assert " for event parcel/delivered until 2" in waiting


async def test_a_run_that_waits_for_a_step_is_listed_in_its_first_attempt(dsn, on_this_database):
    await run(dsn, waits)
    row = jobspec("runs").stdout.splitlines()[1]
    assert row.split()[2:6] == ["pending", "1", "of", "5"]


async def test_steps_are_told_in_json_with_what_they_wait_for(dsn, on_this_database, connection):
    await run(dsn, waits)
    told = json.loads(jobspec("run", str(run_of(connection).id), "--json").stdout)
    assert [one["state"] for one in told["steps"]] == ["done", "done", "failed", "waiting"]
    assert told["steps"][2]["error"]["type"] == "ValueError"
    assert told["steps"][3]["event"] == "parcel/delivered"


async def test_a_run_of_many_steps_shows_the_hundred_that_were_written_last(
    dsn, on_this_database, connection
):
    async def handler(context):
        for number in range(103):
            await context.step.run(f"page {number}", str, number)

    await run(dsn, handler)
    names = [line.split("  ")[0] for line in shown_steps(run_of(connection).id)[1:]]
    assert names == [f"page {number}" for number in range(3, 103)]


async def test_a_step_that_waits_for_a_run_names_it(dsn, on_this_database, connection):
    async def parent(context):
        await context.step.invoke("child")

    async def child(context):
        await context.step.sleep("pause", HOUR)

    compiled = jobs(job={"handler": parent}, child={"event": "never", "handler": child})
    asking = send(dsn, compiled)
    await run_until_idle(compiled, dsn)
    asked = next(one.id for one in runs(connection) if one.id != asking)
    assert shown_steps(asking)[1].rstrip().endswith(f" for run {asked}")


async def test_a_sleep_waits_until_its_time_and_is_done_then(
    dsn, on_this_database, clock, connection
):
    async def handler(context):
        await context.step.sleep("pause", HOUR)

    await run(dsn, handler)
    number = run_of(connection).id
    assert " waiting " in shown_steps(number)[1]
    assert " until 2" in shown_steps(number)[1]
    clock.advance(HOUR)
    assert shown_steps(number)[1].split()[2] == "done"
