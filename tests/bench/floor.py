"""The floor: the least SQL that keeps, claims and completes jobs durably, and nothing else."""

from __future__ import annotations

import psycopg
from psycopg_pool import AsyncConnectionPool

SENDERS = 16
BATCH = 1_000

SCHEMA = """
    create table floor_jobs (
        id bigint generated always as identity primary key,
        run_at timestamptz not null default now(),
        key text unique,
        running boolean not null default false,
        value bigint not null
    );
    create index floor_jobs_ready on floor_jobs (run_at, id) where not running;
    create table floor_steps (n bigint primary key, result json not null);
"""
SEND = "insert into floor_jobs (value) values (%s)"
SEND_ONCE = "insert into floor_jobs (value, key) values (%s, %s) on conflict (key) do nothing"
SEND_LATEST = """
    insert into floor_jobs (value, key, run_at) values (%s, %s, now() + interval '1 minute')
    on conflict (key) do update set value = excluded.value, run_at = excluded.run_at
"""
CLAIM = """
    update floor_jobs set running = true where id in (
        select id from floor_jobs where not running and run_at <= now()
        order by run_at, id limit %s for update skip locked
    ) returning id, value
"""
COMPLETE = "delete from floor_jobs where id = any(%s)"


def install(dsn):
    """Make the tables of the floor in an empty database."""
    with psycopg.connect(dsn) as connection:
        connection.execute(SCHEMA)


class Floor:
    """A sender and a worker of the floor; a connection for each of the senders at once."""

    def __init__(self, dsn):
        self._dsn = dsn

    async def __aenter__(self):
        options = {"autocommit": True, "prepare_threshold": 0}
        self._pool = AsyncConnectionPool(
            self._dsn, min_size=SENDERS, max_size=SENDERS, open=False, kwargs=options
        )
        await self._pool.open(wait=True)
        self._one = await psycopg.AsyncConnection.connect(self._dsn, **options)
        return self

    async def __aexit__(self, *failure):
        await self._one.close()
        await self._pool.close()

    async def send(self, value):
        async with self._pool.connection() as connection:
            await connection.execute(SEND, [value])

    async def send_many(self, values):
        async with (
            self._one.cursor() as cursor,
            cursor.copy("copy floor_jobs (value) from stdin") as copy,
        ):
            for value in values:
                await copy.write_row([value])

    async def send_once(self, key, value):
        async with self._pool.connection() as connection:
            await connection.execute(SEND_ONCE, [value, key])

    async def send_latest(self, key, value):
        async with self._pool.connection() as connection:
            await connection.execute(SEND_LATEST, [value, key])

    async def drain(self, on_job):
        while rows := await self._claim():
            for _, value in rows:
                on_job(value)
            await self._one.execute(COMPLETE, [[row[0] for row in rows]])

    async def work(self, on_job, stop):
        """Take each job as soon as a notification tells of it, until `stop` is set."""
        await self._one.execute("listen floor")
        ears = self._one.notifies()
        while not stop.is_set():
            await anext(ears)
            await ears.aclose()
            await self.drain(on_job)
            ears = self._one.notifies()

    async def send_and_wake(self, value):
        async with self._pool.connection() as connection:
            await connection.execute(SEND, [value])
            await connection.execute("notify floor")

    async def steps(self, count):
        """Keep as many results, one after the other."""
        for n in range(count):
            await self._one.execute("insert into floor_steps values (%s, '1')", [n])

    async def _claim(self):
        return await (await self._one.execute(CLAIM, [BATCH])).fetchall()
