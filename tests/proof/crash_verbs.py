"""What the engine can be asked, each as it is asked by a client or a worker whose line may break.

A verb has what was there before, and what is done through the line; a client that is told of an
error asks again, as its user would, and a worker by itself.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

from psycopg import OperationalError

from enginekit import PATIENCE
from jobspec_engine import AsyncClient, Client, Event
from jobspec_engine.calls import drive, fetch
from jobspec_engine.cron import Crons
from jobspec_engine.errors import MigrationError
from jobspec_engine.journal import Journal
from jobspec_engine.memos import StepCall, StepKey
from jobspec_engine.persistence import Persistence
from jobspec_engine.retention import Retention, prune
from jobspec_engine.rows import Completion, Failure, Held, Suspension
from jobspec_engine.step_statements import MemoWrite
from proof.pair import LEASE, MAX_REFUNDS, STEPS, UPKEEP

TOKEN = UUID(int=1)
HOUR = timedelta(hours=1)
MOST_POLLS = 10_000
OLD = Retention(*[timedelta(minutes=1)] * 3, batch=5)
FULL = {"once": "p", "key": "q"}
VERBS = {}


def verb(*, before=(), afterwards=()):
    """Register a function as a verb: it is given the world, after what `before` did there.

    What is done `afterwards` finds the statements ended that were given up.
    """

    def register(act):
        VERBS[act.__name__] = (before, act, afterwards)
        return act

    return register


def again(call):
    """Ask again while the line breaks, as a user does who is told of it."""
    for _ in range(3):
        try:
            return call()
        except (OperationalError, MigrationError):
            continue
    return call()


def an_event(world, number=1, name="a"):
    world.client.send(name, {"once": f"p{number}"}, id=f"e{number}")


def some_events(world):
    for number, name in enumerate("aab"):
        an_event(world, number, name)


def held(world):
    """Have the runs of some events claimed; those that are debounced are due."""
    some_events(world)
    world.clock.advance(30)
    rows = fetch(world.connection, STEPS.claim(list(world.jobs), 100, LEASE, TOKEN, "w"))
    world.held = [Held(row.run_id, TOKEN) for row in rows]


def failed(world):
    held(world)
    failures = [Failure(*one, None, "not-retriable", "m", '"e"') for one in world.held]
    fetch(world.connection, STEPS.fail(failures))


def abandoned(world):
    held(world)
    world.clock.advance(LEASE + LEASE)


def awaiting(world):
    """Have a run wait for an event."""
    held(world)
    write = MemoWrite.of(world.held[0], _step("wait"), "waiting")
    fetch(world.connection, STEPS.remember([write._replace(delay=HOUR, event_name="a")]))


def old(world):
    failed(world)
    world.clock.advance(HOUR)


def scheduled(world):
    database(world, lambda opened: opened.drive(Crons(world.jobs, UPKEEP).watch()))
    world.clock.advance(150)


def paused(world):
    some_events(world)
    world.client.pause("plain")


def asked(world, call):
    """Ask a client of a line that may break."""
    with Client(world.jobs, world.line.dsn) as client:
        world.arm()
        again(lambda: call(client))


def database(world, call):
    """Do something through the connections of a worker."""

    async def used():
        async with Persistence(world.line.dsn, PATIENCE) as opened:
            await call(opened)

    world.arm()
    asyncio.run(used())


@verb()
def send(world):
    asked(world, lambda client: client.send("b", {}, id="e"))


@verb()
def send_with_keys(world):
    asked(world, lambda client: client.send("a", FULL, id="e"))


@verb(before=[some_events])
def send_into_what_waits(world):
    asked(world, lambda client: client.send("a", {"once": "p1"}, id="e"))


@verb(before=[awaiting])
def send_what_is_awaited(world):
    asked(world, lambda client: client.send("a", FULL, id="e"))


@verb()
def send_many(world):
    events = [Event("ab"[n % 2], FULL, f"e{n}") for n in range(6)]
    asked(world, lambda client: client.send_many(events))


@verb()
def send_in_bulk(world):
    events = [Event("plain", {}, f"e{n}") for n in range(1_100)]
    asked(world, lambda client: client.send_many(events))


@verb()
def send_asynchronously(world):
    async def sent():
        async with AsyncClient(world.jobs, world.line.dsn) as client:
            for _ in range(3):
                try:
                    return await client.send("a", FULL, id="e")
                except OperationalError:
                    continue
            return await client.send("a", FULL, id="e")

    world.arm()
    asyncio.run(sent())


@verb()
def add_job(world):
    asked(world, lambda client: client.add_job("plain", {}, job_key="k"))


@verb(before=[some_events])
def cancel(world):
    run_ids = world.run_ids()
    asked(world, lambda client: [client.cancel(run_id) for run_id in run_ids[:2]])


@verb(before=[some_events])
def cancel_by_key(world):
    asked(world, lambda client: client.cancel_by_key("active", idempotency_key="p2"))


@verb(before=[failed])
def replay(world):
    run_ids = world.run_ids()
    asked(world, lambda client: client.replay_many(run_ids))


@verb(before=[some_events])
def pause(world):
    asked(world, lambda client: client.pause("plain"))


@verb(before=[paused])
def resume(world):
    asked(world, lambda client: client.resume("plain"))


@verb(before=[some_events])
def claim(world):
    call = STEPS.claim(list(world.jobs), 100, LEASE, TOKEN, "w")
    database(world, lambda opened: opened.fetch(call))


@verb(before=[held])
def heartbeat(world):
    database(world, lambda opened: opened.fetch(STEPS.heartbeat(world.held, LEASE)))


@verb(before=[held])
def complete(world):
    call = STEPS.complete(Completion(*one, "1") for one in world.held)
    database(world, lambda opened: opened.fetch(call))


@verb(before=[held])
def retry(world):
    call = STEPS.fail(
        Failure(*one, timedelta(0), "attempts-used", "m", '"e"') for one in world.held
    )
    database(world, lambda opened: opened.fetch(call))


@verb(before=[held])
def fail(world):
    call = STEPS.fail(Failure(*one, None, "not-retriable", "m", '"e"') for one in world.held)
    database(world, lambda opened: opened.fetch(call))


@verb(before=[held])
def release(world):
    call = STEPS.release(Suspension(*one) for one in world.held)
    database(world, lambda opened: opened.fetch(call))


@verb(before=[abandoned])
def reclaim(world):
    database(world, lambda opened: opened.fetch(STEPS.reclaim(MAX_REFUNDS, 100)))


def prune_the_rest(world):
    """Prune once more: the next one has what somebody held."""
    drive(world.connection, prune(OLD, UPKEEP))


@verb(before=[old], afterwards=[prune_the_rest])
def prune_everything(world):
    database(world, lambda opened: opened.drive(prune(OLD, UPKEEP)))


@verb(before=[scheduled])
def tick(world):
    """Poll until nothing is due: while a lost session holds a schedule, the next poll has it."""

    async def polled(opened):
        crons = Crons(world.jobs, UPKEEP)
        for _ in range(MOST_POLLS):
            keys = await opened.drive(crons.watch())
            if not keys:
                return
            await opened.transact(lambda keys=keys: crons.tick(keys))
        raise AssertionError("its ticks are due for good")

    database(world, polled)


def _step(kind):
    return StepCall(StepKey("", kind, 1), kind, 1)


@verb(before=[held])
def remember_steps(world):
    """A sleep, a wait, and what a function gave: a memo each."""
    writes = [
        MemoWrite.of(one, _step(kind), state)._replace(**options)
        for one, (kind, state, options) in zip(
            world.held,
            [
                ("sleep", "waiting", {"delay": HOUR}),
                ("wait", "waiting", {"delay": HOUR, "event_name": "a"}),
                ("run", "done", {"result": "1"}),
            ],
            strict=False,
        )
    ]
    database(world, lambda opened: opened.fetch(STEPS.remember(writes)))


@verb(before=[awaiting])
def look_back(world):
    """Settle a wait by an event that came before it."""
    call = STEPS.look_back(world.held[0], StepKey("", "wait", 1), None, [])
    database(world, lambda opened: opened.fetch(call))


@verb(before=[held])
def reopen(world):
    """Have a step tried again that failed."""
    failed = MemoWrite.of(world.held[0], _step("run"), "failed")._replace(error='"e"')
    fetch(world.connection, STEPS.remember([failed]))
    call = STEPS.reopen(world.held[0], StepKey("", "run", 1))
    database(world, lambda opened: opened.fetch(call))


def journal(world, opened):
    return Journal(world.jobs, STEPS, opened, lambda _: True, HOUR)


@verb(before=[held])
def invoke(world):
    database(
        world,
        lambda opened: journal(world, opened).invoke(world.held[0], _step("invoke"), "plain", "{}"),
    )


@verb(before=[held])
def send_from_a_step(world):
    def write(_):
        return MemoWrite.of(world.held[0], _step("send"), "done")._replace(result="1")

    database(
        world,
        lambda opened: journal(world, opened).send(write, Event("a", FULL, "from a step")),
    )
