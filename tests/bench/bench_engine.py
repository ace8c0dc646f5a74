"""Speed of the engine, as ratios to a bare psycopg loop: `python tests/bench/bench_engine.py`.

The floor claims and completes rows of a table that can do nothing else, on one connection, in
batches as large as the worker's concurrency. It and the worker take turns, so that a busy machine
slows both of them down; each ratio is the median over the rounds of what one round measured.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psycopg

import jobspec
from jobspec_engine import Client, EmbeddedPostgres, Event, Worker
from jobspec_engine.migrate import migrate

ROUNDS, RUNS, BATCH = 5, 10_000, 100
SETTINGS = {"synchronous_commit": "on", "shared_buffers": "256MB", "max_wal_size": "4GB"}

SCHEMA = """
    create table floor_jobs (
        id bigint generated always as identity primary key,
        run_at timestamptz not null default now(),
        running boolean not null default false,
        value bigint not null
    );
    create index floor_jobs_ready on floor_jobs (run_at, id) where not running;
"""
CLAIM = """
    update floor_jobs set running = true where id in (
        select id from floor_jobs where not running and run_at <= now()
        order by run_at, id limit %s for update skip locked
    ) returning id, value
"""


def main():
    with tempfile.TemporaryDirectory(prefix="jobspec-bench-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        with EmbeddedPostgres(folder, SETTINGS) as server:
            migrate(server.dsn)
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                connection.execute(SCHEMA)
            for line in race(server.dsn):
                sys.stdout.write(f"{line}\n")


def race(dsn):
    contestants = {"floor": floor, "worker": worker}
    taken = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, drain in contestants.items():
            taken[name].append(drain(dsn))
    for name, seconds in taken.items():
        yield f"{name:<8} {RUNS / statistics.median(seconds):>8,.0f} runs/s"
    ratios = [own / floor for own, floor in zip(taken["worker"], taken["floor"], strict=True)]
    yield f"the worker takes {statistics.median(ratios):.2f} times as long as the floor"


def floor(dsn):
    """Drain a table, and return the seconds that it took."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "insert into floor_jobs (value) select n from generate_series(1, %s) as n", [RUNS]
        )
        start = time.perf_counter()
        while rows := connection.execute(CLAIM, [BATCH]).fetchall():
            ids = [row[0] for row in rows]
            connection.execute("delete from floor_jobs where id = any(%s)", [ids])
        return time.perf_counter() - start


def worker(dsn):
    """Drain the queue by a worker at its defaults, and return the seconds that it took."""

    async def handler(context):
        pass

    registry = jobspec.Registry()
    registry.job(id="noop", triggers=["noop"])(handler)
    jobs = jobspec.compile(registry)
    with Client(jobs, dsn) as client:
        client.send_many([Event("noop", {"n": n}) for n in range(RUNS)])
    start = time.perf_counter()
    asyncio.run(Worker(jobs, dsn).run(until_idle=True))
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
