"""Code that changed under a running job, and leases that were lost: nothing is done wrongly."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from enginekit import (
    SQL,
    claim,
    count,
    dead_letters,
    job,
    run_of,
    run_until_idle,
    runs,
    until_async,
    working,
)
from jobspec_engine import Client
from jobspec_engine.calls import fetch
from jobspec_engine.rows import Suspension

LONG = timedelta(minutes=5)


class Script:
    """A handler that does the steps it is told to, and notes what each did."""

    def __init__(self):
        self.done = []

    def of(self, text):
        """Return the handler whose steps are these: `a b` to run, `-` to sleep, `e!` to send."""

        async def handler(context):
            for word in text.split():
                if word == "-":
                    await context.step.sleep("rest", LONG)
                elif word.endswith("!"):
                    await context.step.send_event(word[:-1], {})
                else:
                    await context.step.run(word, self.done.append, word)

        return handler


async def changed(dsn, clock, connection, before, after):
    """Run a handler until it sleeps, then enter another one for its run; return what was done."""
    script = Script()
    old = job(handler=script.of(before))
    with Client(old, dsn) as client:
        client.send("event", {})
    await run_until_idle(old, dsn)
    assert run_of(connection).state == "pending"
    script.done.clear()
    clock.advance(LONG)
    await run_until_idle(job(handler=script.of(after)), dsn)
    return script.done


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("boot -", "provision -", ["`boot`", "`provision`"]),
        ("boot -", "- check stop", ["`boot`", "`check`"]),
        ("boot -", "-", ["`boot`", "ended without it"]),
        ("boot -", "", ["`boot`", "ended without it"]),
        ("a b -", "b a -", ["`a`", "`b`"]),
        ("a b -", "b -", ["`a`", "`b`"]),
        ("a b -", "a c -", ["`b`", "`c`"]),
        ("a b -", "a new b -", ["`b`", "`new`"]),
        ("a a -", "a", ["`a`, call 2", "ended without it"]),
        ("boot -", "boot! -", ["`boot`", "as `run`, which is now `send`"]),
    ],
)
async def test_a_step_that_was_renamed_moved_or_removed_is_named_and_nothing_is_done(
    dsn, clock, connection, before, after, names
):
    assert await changed(dsn, clock, connection, before, after) == []
    (dead,) = dead_letters(connection)
    assert (dead.reason, run_of(connection).state) == ("step-drift", "failed")
    assert all(name in dead.message for name in names), dead.message
    assert "Put the step back, or keep the old path for older runs" in dead.message


@pytest.mark.parametrize(
    ("before", "after", "done"),
    [
        ("boot -", "boot - stop", ["stop"]),
        ("boot - old", "boot - new", ["new"]),
        ("boot -", "boot stop", ["stop"]),
        ("boot -", "- boot stop", ["stop"]),
    ],
)
async def test_what_was_not_come_to_yet_may_change_and_sleeps_may_come_and_go(
    dsn, clock, connection, before, after, done
):
    assert await changed(dsn, clock, connection, before, after) == done
    assert run_of(connection).state == "completed"


async def test_a_step_that_moved_to_where_another_had_begun_and_not_ended_is_found(dsn, connection):
    done, begun = [], asyncio.Event()

    async def never_ends():
        begun.set()
        await asyncio.Event().wait()

    async def both(context):
        await asyncio.gather(
            context.step.run("a", never_ends), context.step.run("b", done.append, "b")
        )

    async def only_the_second(context):
        await context.step.run("b", done.append, "b")

    old, new = job(handler=both), job(handler=only_the_second)
    async with working(old, dsn) as at_work:
        with Client(old, dsn) as client:
            client.send("event", {})
        await begun.wait()
        await until_async(lambda: count(connection, "job_step") == 1, "the memo")
        at_work.stop(now=True)
    await run_until_idle(new, dsn)
    (dead,) = dead_letters(connection)
    assert (dead.reason, done) == ("step-drift", ["b"])
    assert "step `b`, as number 2 of its task, which is now number 1" in dead.message


async def test_a_renamed_first_step_of_a_concurrent_task_is_found_when_the_handler_ends(
    dsn, clock, connection
):
    """Until then the task that is recorded may still come."""
    done = []

    def of(first, second):
        async def task(context, number):
            for name in (first, second):
                await context.step.run(f"{name}:{number}", done.append, name)
            await context.step.sleep("rest", LONG)

        async def handler(context):
            await asyncio.gather(task(context, 1), task(context, 2))

        return job(handler=handler)

    with Client(of("a", "b"), dsn) as client:
        client.send("event", {})
    await run_until_idle(of("a", "b"), dsn)
    done.clear()
    for _ in range(2):
        clock.advance(LONG)
        await run_until_idle(of("new", "b"), dsn)
    assert done == ["new", "new", "b", "b"]
    (dead,) = dead_letters(connection)
    assert (dead.reason, "`a:1`" in dead.message) == ("step-drift", True)


async def test_a_handler_can_not_swallow_drift(dsn, clock, connection):
    script = Script()

    async def catches(context):
        try:
            await script.of("new")(context)
        except BaseException:  # noqa: BLE001  it is the point
            await context.step.run("tear down", script.done.append, "tear down")

    old = job(handler=script.of("old -"))
    with Client(old, dsn) as client:
        client.send("event", {})
    await run_until_idle(old, dsn)
    clock.advance(LONG)
    await run_until_idle(job(handler=catches), dsn)
    assert (script.done, dead_letters(connection)[0].reason) == (["old"], "step-drift")


async def test_a_run_that_drifted_is_replayed_from_its_memos_when_its_steps_are_back(
    dsn, clock, connection
):
    await changed(dsn, clock, connection, "boot -", "provision -")
    script = Script()
    back = job(handler=script.of("boot - stop"))
    with Client(back, dsn) as client:
        replayed = client.replay(run_of(connection).id)
    await run_until_idle(back, dsn)
    assert replayed.outcome == "enqueued"
    assert script.done == ["stop"]
    assert [run.state for run in runs(connection)] == ["failed", "completed"]


async def test_a_run_that_goes_on_has_the_event_id_that_it_gave_others_as_a_key(
    dsn, clock, connection
):
    """However often it drifts: the slot that it holds is held by that id."""
    seen = []

    def of(step):
        async def handler(context):
            seen.append(context.event.id)
            await context.step.run(step, print)
            await context.step.sleep("rest", LONG)

        return job(handler=handler)

    with Client(of("a"), dsn) as client:
        client.send("event", {}, id="first")
        await run_until_idle(of("a"), dsn)
        for _ in range(2):
            clock.advance(LONG)
            await run_until_idle(of("b"), dsn)
            client.replay(runs(connection)[-1].id)
        await run_until_idle(of("a"), dsn)
    assert seen == ["first"] * 4
    assert runs(connection)[-1].state == "completed"


async def test_any_other_run_is_replayed_from_its_beginning(dsn, clock, connection):
    done = []

    async def handler(context):
        await context.step.run("a", done.append, context.event.id)
        if len(done) == 1:
            raise ValueError("once")

    compiled = job(handler=handler, retries=0)
    with Client(compiled, dsn) as client:
        client.send("event", {})
        await run_until_idle(compiled, dsn)
        client.replay(run_of(connection).id)
    await run_until_idle(compiled, dsn)
    first = runs(connection)[0]
    assert done == [first.event_id, f"jobspec/replay/{first.id}"]


# Versions


async def test_a_run_goes_by_the_version_it_began_with(dsn, clock, connection):
    done = []

    async def first(context):
        await context.step.run("boot", done.append, "boot")
        await context.step.sleep("rest", LONG)

    async def second(context):
        version = await context.step.version(2)
        await context.step.run("boot", done.append, "boot")
        if version >= 2:
            await context.step.run("check", done.append, "check")
        await context.step.sleep("rest", LONG)
        await context.step.run("stop", done.append, version)

    old, new = job(handler=first), job(handler=second)
    for compiled in (old, new):
        with Client(compiled, dsn) as client:
            client.send("event", {})
        await run_until_idle(compiled, dsn)
    assert done == ["boot", "boot", "check"]
    kept = "select name, result from jobspec.job_step where kind = 'version'"
    assert connection.execute(kept).fetchall() == [("version", 2)]
    for _ in range(2):
        clock.advance(LONG)
        await run_until_idle(new, dsn)
    assert sorted(done[3:]) == [1, 2]
    assert [run.state for run in runs(connection)] == ["completed", "completed"]


# Leases


def test_a_run_that_is_given_back_before_its_handler_was_entered_has_had_no_pass(dsn, connection):
    """One that was claimed ahead of a free slot: `pass_number` tells entries into the handler."""
    with Client(job(), dsn) as client:
        client.send("event", {})
    for entered, passes in ((False, 0), (True, 1)):
        (run,) = claim(connection, token=(token := uuid4()))
        assert fetch(connection, SQL.release([Suspension(run.run_id, token, entered=entered)]))
        assert (run_of(connection).passes, run_of(connection).attempt) == (passes, 0)


async def test_a_step_of_a_run_that_another_worker_has_is_not_done(dsn, connection, caplog):
    done = []

    async def handler(context):
        connection.execute("update jobspec.job_queue set lease_token = gen_random_uuid()")
        await context.step.run("a", done.append, "a")
        await context.step.run("b", done.append, "b")

    compiled = job(handler=handler)
    with Client(compiled, dsn) as client:
        client.send("event", {})
    await run_until_idle(compiled, dsn)
    assert done == ["a"]  # the first that was begun before it was heard of
    assert count(connection, "job_step") == 0
    assert (run_of(connection).state, run_of(connection).errors) == ("running", [])
    assert "failed" not in caplog.text


@pytest.mark.parametrize("kind", ["run", "sleep", "send", "wait", "invoke"])
async def test_no_step_of_any_kind_writes_without_the_lease(dsn, clock, connection, kind):
    async def handler(context):
        connection.execute("update jobspec.job_queue set lease_token = gen_random_uuid()")
        match kind:
            case "run":
                await context.step.run("x", print)
            case "sleep":
                await context.step.sleep("x", LONG)
            case "send":
                await context.step.send_event("x", {})
            case "wait":
                await context.step.wait_for_event("x", timeout=LONG)
            case "invoke":
                await context.step.invoke("job")

    compiled = job(handler=handler)
    with Client(compiled, dsn) as client:
        client.send("event", {})
    await run_until_idle(compiled, dsn)
    assert [count(connection, table) for table in ("job_step", "job_event", "job_queue")] == [
        0,
        1,
        1,
    ]
    assert run_of(connection).state == "running"


async def test_a_worker_that_can_not_be_sure_of_its_lease_begins_no_step(dsn, connection):
    """As one that was frozen past it: its clock tells before any statement could."""
    done, entered = [], asyncio.Event()

    async def handler(context):
        entered.set()
        at_work._keeper._renewed_at.clear()
        await context.step.run("a", done.append, "a")

    compiled = job(handler=handler)
    async with working(compiled, dsn) as at_work:
        with Client(compiled, dsn) as client:
            client.send("event", {})
        await entered.wait()
    assert done == []
    assert run_of(connection).state == "running"
