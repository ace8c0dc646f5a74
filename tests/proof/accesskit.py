"""A database with something of everything in it, and people who are in one of its roles each."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from datetime import timedelta

import psycopg
from click.testing import CliRunner
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.errors import InsufficientPrivilege

from enginekit import claim, job, jobs, run_until_idle
from jobspec.cli import main
from jobspec_engine import Client
from jobspec_engine.access import role_of

HOUR = timedelta(hours=1)
BURST = {"key": "event.data.key", "period": "1h"}


@contextmanager
def login_in(dsn, *roles, options=""):
    """Give the address of a database for somebody who is in these roles, and in no other."""
    name = sql.Identifier(f"jobspec_login_{secrets.token_hex(6)}")
    password = secrets.token_hex(12)
    with psycopg.connect(dsn, autocommit=True) as connection:
        make = "create role {} login password {} " + options
        connection.execute(sql.SQL(make).format(name, sql.Literal(password)))
        for role in roles:
            connection.execute(sql.SQL("grant {} to {}").format(sql.Identifier(role), name))
        yield make_conninfo(dsn, user=name.as_string().strip('"'), password=password)
        connection.execute(sql.SQL("reassign owned by {} to current_user").format(name))
        connection.execute(sql.SQL("drop owned by {}").format(name))
        connection.execute(sql.SQL("drop role {}").format(name))


def member(dsn, kind, schema="jobspec"):
    """Give the address of a database for somebody who is in one of the schema's roles."""
    return login_in(dsn, role_of(kind, schema))


def fills():
    """Compile jobs that leave something behind in each table."""

    async def done(context):
        return {"secret": await context.step.run("look", lambda: {"secret": 1})}

    async def waits(context):
        await context.step.wait_for_event("stopped", timeout=HOUR)

    async def fails(context):
        raise ValueError("secret")

    return jobs(
        done={"handler": done, "idempotency": "event.data.key"},
        waits={"handler": waits},
        fails={"handler": fails, "retries": 0},
        burst={"debounce": BURST},
    )


async def fill(dsn):
    """Have runs in every state, memos, keys, a dead letter, a pause, a schedule and a lease."""
    compiled, held = fills(), job("held")
    with Client(compiled, dsn) as client:
        client.send("event", {"key": "secret"}, id="known")
        client.pause("paused")
    await run_until_idle(compiled, dsn)
    with Client(held, dsn) as client, psycopg.connect(dsn, autocommit=True) as connection:
        client.add_job("held")
        claim(connection, "held", lease=HOUR)
        connection.execute(
            "insert into jobspec.job_cron values ('done', sha256(''), '* * * * *', now())"
        )


def command(dsn, *arguments, code=0, schema="jobspec"):
    """Run a command, and return all that it printed."""
    result = CliRunner().invoke(main, [*arguments, "--dsn", dsn, "--schema", schema])
    assert result.exit_code == code, result.output
    return result.output


def refused(dsn, statement):
    """Tell whether somebody is refused a statement; nothing stays of it."""
    with psycopg.connect(dsn) as connection:
        try:
            connection.execute(statement)
        except InsufficientPrivilege:
            return True
        finally:
            connection.rollback()
    return False
