"""Sending inside the caller's own transaction: the event is kept when that commits, else gone."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

import jobspec
from examples.database import database
from jobspec_engine import Client, Context, Worker

registry = jobspec.Registry()


@registry.job(id="account.welcome", triggers=["account.created"])
async def welcome(context: Context) -> None:
    print(f"welcome, {context.event.data['name']}")


def sign_up(client: Client, connection: psycopg.Connection[Any], name: str) -> None:
    """Make an account and ask for its welcome: both, or neither."""
    with connection.transaction():
        client.send("account.created", {"name": name}, connection=connection)
        connection.execute("insert into account values (%s)", [name])


def main(dsn: str) -> None:
    jobs = jobspec.compile(registry)
    with psycopg.connect(dsn, autocommit=True) as connection, Client(jobs, dsn) as client:
        connection.execute("create temporary table account (name text primary key)")
        for name in ("Ada", "Ada", "Grace"):
            try:
                sign_up(client, connection, name)
            except psycopg.errors.UniqueViolation:
                print(f"{name} has an account already: rolled back, no second welcome")
    asyncio.run(Worker(jobs, dsn, concurrency=1).run(until_idle=True))


if __name__ == "__main__":
    with database() as dsn:
        main(dsn)
