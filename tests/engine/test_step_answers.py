"""Answers that come before they are waited for, and which events a wait counts."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest

from enginekit import job, jobs, run_of, run_until_idle, runs, until_async, working
from jobspec_engine import Client, Event
from jobspec_engine.journal import Journal
from jobspec_engine.step_statements import StepStatements

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def send(dsn, compiled, *events):
    with Client(compiled, dsn) as client:
        client.send_many([Event(name, data) for name, data in events])


def asks(ask, **options):
    """Return a job that asks, waits for the answer, and returns it."""

    async def handler(context):
        await ask(context.step)
        event = await context.step.wait_for_event("answer", timeout=HOUR, **options)
        return event and event.data["n"]

    return handler


async def entered_once(dsn, compiled, connection):
    await run_until_idle(compiled, dsn)
    return runs(connection)[0]


async def test_an_answer_that_comes_while_the_question_is_still_put_counts(dsn, clock, connection):
    def question():
        clock.advance(1)
        send(dsn, compiled, ("answer", {"n": 1}))
        clock.advance(1)

    compiled = job(handler=asks(lambda step: step.run("ask", question)))
    send(dsn, compiled, ("event", {}))
    run = await entered_once(dsn, compiled, connection)
    assert (run.state, run.passes, run.result) == ("completed", 1, 1)


async def test_so_does_one_that_comes_before_the_wait_is_begun(dsn, clock, connection):
    async def ask(step):
        await step.send_event("question", {})
        clock.advance(1)
        send(dsn, compiled, ("answer", {"n": 1}))
        clock.advance(1)

    compiled = job(handler=asks(ask))
    send(dsn, compiled, ("event", {}))
    assert (await entered_once(dsn, compiled, connection)).result == 1


async def test_and_one_of_the_run_that_was_invoked(dsn, clock, connection):
    async def answers(context):
        await context.step.send_event("answer", {"n": 1})
        await context.step.sleep("rest", HOUR / 4)

    compiled = jobs(
        job={"handler": asks(lambda step: step.invoke("other"), match={"data.n": 1})},
        other={"event": "never", "handler": answers},
    )
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    clock.advance(HOUR / 4)
    await run_until_idle(compiled, dsn)
    assert [run.state for run in runs(connection)] == ["pending", "completed"]  # too long ago


async def test_an_event_from_before_the_question_is_no_answer(dsn, clock, connection):
    async def ask(step):
        send(dsn, compiled, ("answer", {"n": 1}))
        clock.advance(SECOND)
        await step.run("ask", print)

    compiled = job(handler=asks(ask))
    send(dsn, compiled, ("event", {}))
    assert (await entered_once(dsn, compiled, connection)).state == "pending"


@pytest.mark.parametrize(("minutes", "state"), [(9, "completed"), (11, "pending")])
async def test_a_wait_looks_back_for_ten_minutes(dsn, clock, connection, minutes, state):
    async def ask(step):
        await step.run("ask", print)
        send(dsn, compiled, ("answer", {"n": 1}))
        clock.advance(timedelta(minutes=minutes))

    compiled = job(handler=asks(ask))
    send(dsn, compiled, ("event", {}))
    assert (await entered_once(dsn, compiled, connection)).state == state


async def test_an_answer_must_match(dsn, clock, connection):
    async def ask(step):
        await step.run("ask", print)
        send(dsn, compiled, ("answer", {"n": 1}), ("other", {"n": 2}), ("answer", {"n": 2}))

    compiled = job(handler=asks(ask, match={"data.n": 2}))
    send(dsn, compiled, ("event", {}))
    assert (await entered_once(dsn, compiled, connection)).result == 2


async def test_the_event_of_the_run_is_no_answer(dsn, clock, connection):
    async def handler(context):
        return await context.step.wait_for_event("event", timeout=HOUR)

    compiled = job(handler=handler)
    send(dsn, compiled, ("event", {}))
    assert (await entered_once(dsn, compiled, connection)).state == "pending"


@pytest.mark.parametrize("apart", [timedelta(0), SECOND])
async def test_each_of_several_events_counts_for_one_wait(dsn, clock, connection, apart):
    """They come as one burst while the first is waited for; no other comes after it."""

    async def handler(context):
        events = [await context.step.wait_for_event("tick", timeout=HOUR) for _ in range(3)]
        return sorted(event.data["n"] for event in events)

    compiled = job(handler=handler)
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    if apart:
        for n in range(3):
            clock.advance(apart)
            send(dsn, compiled, ("tick", {"n": n}))
    else:
        send(dsn, compiled, *(("tick", {"n": n}) for n in range(3)))
    await run_until_idle(compiled, dsn)
    assert run_of(connection).result == [0, 1, 2]


async def test_an_event_that_came_when_a_wait_was_over_counts_for_the_next(dsn, clock, connection):
    """Its worker comes late to the end of the first wait."""

    async def handler(context):
        first = await context.step.wait_for_event("tick", timeout=SECOND)
        second = await context.step.wait_for_event("tick", timeout=HOUR)
        return [first, second.data]

    compiled = job(handler=handler)
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    clock.advance(2 * SECOND)
    send(dsn, compiled, ("tick", {"n": 1}))
    await run_until_idle(compiled, dsn)
    assert run_of(connection).result == [None, {"n": 1}]


async def test_a_wait_beside_the_question_counts_what_comes_since_it_was_called(
    dsn, clock, connection
):
    send_answer = asyncio.Event()

    async def question():
        await send_answer.wait()

    async def handler(context):
        await context.step.run("before", print)
        await context.step.sleep("rest", HOUR)
        _, event = await asyncio.gather(
            context.step.run("ask", question),
            context.step.wait_for_event("answer", timeout=HOUR),
        )
        return event.data

    compiled = job(handler=handler)
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    clock.advance(HOUR - SECOND)
    send(dsn, compiled, ("answer", {"n": 1}))
    clock.advance(SECOND)
    async with working(compiled, dsn):
        waiting = "select 1 from jobspec.job_step where kind = 'wait'"
        await until_async(lambda: connection.execute(waiting).fetchone(), "the wait")
        send(dsn, compiled, ("answer", {"n": 2}))
        send_answer.set()
        await until_async(lambda: run_of(connection).state == "completed", "the end")
    assert run_of(connection).result == {"n": 2}


async def test_that_it_takes_a_while_to_record_it_changes_nothing(
    dsn, clock, connection, monkeypatch
):
    keep, answered = Journal.keep, asyncio.Event()

    async def slowly(journal, write):
        if (write.kind, write.state) == ("wait", "waiting"):
            clock.advance(SECOND)
            send(dsn, compiled, ("answer", {"n": 1}))
            clock.advance(SECOND)
        return await keep(journal, write)

    async def handler(context):
        await context.step.run("before", print)
        asking = asyncio.create_task(context.step.run("ask", answered.wait))
        await asyncio.sleep(0)
        event = await context.step.wait_for_event("answer", timeout=HOUR)
        answered.set()
        await asking
        return event.data

    monkeypatch.setattr(Journal, "keep", slowly)
    compiled = job(handler=handler)
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    assert run_of(connection).result == {"n": 1}


# The race: a send that has not seen the wait, and whose event the look back has not seen


@pytest.fixture
def looks(monkeypatch):
    """Count how often workers looked back."""
    counted = []
    look_back = StepStatements.look_back

    def counting(*args):
        counted.append(args)
        return look_back(*args)

    monkeypatch.setattr(StepStatements, "look_back", counting)
    return counted


async def test_an_answer_whose_send_commits_behind_the_look_back_is_not_lost(
    dsn, clock, connection, looks
):
    compiled = job(handler=asks(lambda step: step.run("ask", print)))
    send(dsn, compiled, ("event", {}))
    with Client(compiled, dsn) as client, psycopg.connect(dsn) as sending:
        client.send("answer", {"n": 1}, connection=sending)
        async with working(compiled, dsn):
            await until_async(lambda: len(looks) > 1, "the second look back")
            sending.commit()
            await until_async(lambda: run_of(connection).state == "completed", "the end")
    assert (run_of(connection).result, run_of(connection).passes) == (1, 1)


async def test_nor_is_one_whose_send_takes_longer_than_a_slot_is_held_for_it(
    dsn, clock, connection
):
    compiled = job(handler=asks(lambda step: step.run("ask", print)))
    send(dsn, compiled, ("event", {}))
    with Client(compiled, dsn) as client, psycopg.connect(dsn) as sending:
        client.send("answer", {"n": 1}, connection=sending)
        await run_until_idle(compiled, dsn, short=timedelta(0))
    assert run_of(connection).run_at < clock.now() + timedelta(minutes=2)
    clock.advance(timedelta(minutes=2))
    await run_until_idle(compiled, dsn)
    assert (run_of(connection).result, run_of(connection).passes) == (1, 2)


async def test_where_nobody_sends_a_wait_looks_back_once(dsn, clock, connection, looks):
    compiled = job(handler=asks(lambda step: step.run("ask", print)))
    send(dsn, compiled, ("event", {}))
    await run_until_idle(compiled, dsn)
    assert (len(looks), run_of(connection).run_at) == (1, clock.now() + HOUR)


async def test_nor_does_it_in_a_later_pass_of_the_same_worker(dsn, clock, connection, looks):
    async def handler(context):
        waits = context.step.wait_for_event("answer", timeout=HOUR)
        await asyncio.wait(
            [
                asyncio.create_task(waits),
                asyncio.create_task(context.step.sleep("rest", 60 * SECOND)),
            ],
            return_when=asyncio.FIRST_COMPLETED,
        )
        return await context.step.run("end", lambda: context.pass_number)

    compiled = job(handler=handler)
    send(dsn, compiled, ("event", {}))
    async with working(compiled, dsn):
        await until_async(
            lambda: run_of(connection).passes and run_of(connection).state != "running"
        )
        clock.advance(60)
        await until_async(lambda: run_of(connection).state == "completed")
    assert (run_of(connection).result, len(looks)) == (2, 1)
