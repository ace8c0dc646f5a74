"""Speed of the engine, as ratios to a floor of bare SQL: `make bench`.

The two take turns, each time in a fresh copy of a database with nothing else in it, so that a
busy machine slows both of them down; each ratio is the median over the rounds of what one round
measured. `--filled` tells instead what rows that are there before cost: as ratios to empty tables.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg
from filled import FILLED
from floor import SENDERS, Floor, install
from own import Own

from jobspec_engine import EmbeddedPostgres
from jobspec_engine.migrate import migrate
from jobspec_engine.testing import Databases

FEW, SOME, MANY, KEYS = 1_000, 4_000, 10_000, 200
FIRST, OTHER = 33, 12  # characters in the columns of a table


@dataclass(frozen=True)
class Workload:
    """What is measured: `run`, which does something `count` times, on a system made ready."""

    name: str
    run: object
    count: int
    prepare: object = None
    short: str = ""


async def one_by_one(system):
    for value in range(FEW):
        await system.send(value)


async def at_once(system):
    await together(SOME, system.send)


async def bulk(system):
    await system.send_many(range(MANY))


async def once(system):
    await together(2 * FEW, lambda value: system.send_once(f"key-{value % KEYS}", value))


async def latest(system):
    await together(2 * FEW, lambda value: system.send_latest(f"key-{value % KEYS}", value))


async def one_key(system):
    await together(2 * FEW, lambda value: system.send_latest("key", value))


async def drain(system):
    """From the first job that is begun until none is left; returns the seconds."""
    begun = []
    await system.drain(lambda _: begun or begun.append(time.perf_counter()))
    return time.perf_counter() - begun[0]


async def latency(system):
    """From before a send until the job is begun, in turn; returns the seconds of half of them."""
    arrived, stop, waits = asyncio.Queue(), asyncio.Event(), []
    work = asyncio.create_task(system.work(arrived.put_nowait, stop))
    for value in range(FEW // 10):
        start = time.perf_counter()
        await system.send_and_wake(value)
        await arrived.get()
        waits.append(time.perf_counter() - start)
    stop.set()
    work.cancel() if isinstance(system, Floor) else await work
    await asyncio.wait([work])
    return statistics.median(waits)


async def steps(system):
    await system.steps(FEW)


async def together(count, call):
    """Make so many calls, by as many senders at once as the field measures with."""
    values = iter(range(count))

    async def send():
        for value in values:
            await call(value)

    await asyncio.gather(*(send() for _ in range(SENDERS)))


WORKLOADS = (
    Workload("sends, one after another", one_by_one, FEW),
    Workload("sends, 16 at once", at_once, SOME, short="sends"),
    Workload("sends in bulk, 10,000", bulk, MANY),
    Workload("sends with an idempotency key", once, 2 * FEW, short="idempotent"),
    Workload("debounced sends, 200 keys", latest, 2 * FEW, short="debounced"),
    Workload("debounced sends, one hot key", one_key, 2 * FEW),
    Workload("drain of 10,000, one worker", drain, MANY, prepare=bulk, short="drain"),
    Workload("send to start of the handler", latency, 1),
    Workload("steps of one run", steps, FEW),
)
OF_FILLED = (WORKLOADS[1], WORKLOADS[3], WORKLOADS[4], WORKLOADS[6])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument(
        "--filled", action="store_true", help="compare full tables with empty ones"
    )
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="jobspec-bench-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        with EmbeddedPostgres(folder) as server, Databases(server.dsn) as databases:
            lines = (
                filled(databases, given.rounds) if given.filled else race(databases, given.rounds)
            )
            for line in lines:
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()


def race(databases, rounds):
    """Yield the table of jobspec and the floor."""
    systems = {Floor: template(databases, install), Own: template(databases, migrate)}
    yield from heading("", "floor", "jobspec", "of the floor")
    for workload in WORKLOADS:
        taken = {system: [] for system in systems}
        for _ in range(rounds):
            for system, name in systems.items():
                taken[system].append(measure(databases, name, system, workload))
        floor, own = taken.values()
        speed = statistics.median(a / b for a, b in zip(floor, own, strict=True))
        yield row(workload.name, shown(workload, floor), shown(workload, own), f"{speed:.2f}")


def filled(databases, rounds):
    """Yield the table of what rows that are there cost."""
    empty = template(databases, migrate)
    yield from heading("of the speed with empty tables", *(one.short for one in OF_FILLED))
    for name, rows in FILLED.items():
        full = template(databases, partial(fill, rows=rows))
        speeds = [compare(databases, empty, full, workload, rounds) for workload in OF_FILLED]
        yield row(name, *(f"{speed:.2f}" for speed in speeds))
        databases.drop(full)


def heading(*cells):
    yield row(*cells)
    yield row("-" * FIRST, *("-" * OTHER for _ in cells[1:]))


def row(first, *others):
    return f"| {first:<{FIRST}} | {' | '.join(f'{cell:>{OTHER}}' for cell in others)} |"


def compare(databases, empty, full, workload, rounds):
    """Tell how fast a workload is with rows there, as a ratio to empty tables."""
    ratios = []
    for _ in range(rounds):
        without = measure(databases, empty, Own, workload)
        ratios.append(without / measure(databases, full, Own, workload))
    return statistics.median(ratios)


def fill(dsn, rows):
    migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(rows)
        connection.execute("vacuum analyze")


def template(databases, install_into):
    """Make a database to copy, and return its name."""
    name, dsn = databases.create()
    install_into(dsn)
    return name


def measure(databases, name, system, workload):
    """Return the seconds that a workload takes in a fresh copy of a database."""
    copy, dsn = databases.create(name)
    try:
        return asyncio.run(timed(system(dsn), workload))
    finally:
        databases.drop(copy)


async def timed(system, workload):
    async with system:
        if workload.prepare is not None:
            await workload.prepare(system)
        start = time.perf_counter()
        told = await workload.run(system)
        return told or time.perf_counter() - start


def shown(workload, seconds):
    """Show how often a second, or how many milliseconds."""
    middle = statistics.median(seconds)
    return (
        f"{middle * 1000:,.2f} ms" if workload.count == 1 else f"{workload.count / middle:,.0f}/s"
    )


if __name__ == "__main__":
    main()
