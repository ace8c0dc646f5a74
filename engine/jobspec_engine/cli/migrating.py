"""Commands about the schema: make it, and say what differs in it."""

from __future__ import annotations

import dataclasses
import sys

import click
import psycopg

from jobspec_engine.access import give_access
from jobspec_engine.cli.options import as_json, database, database_options, server
from jobspec_engine.drift import drift
from jobspec_engine.migrate import migrate
from jobspec_engine.tables import say, to_json


@click.command("migrate")
@database_options
def migrate_command(dsn: str | None, schema: str) -> None:
    """Bring the schema to this version. Safe to repeat, and from many places at once.

    Makes the roles of its sender, worker, reader and owner, too, and gives them what each needs, or
    says who can.
    """
    with server(dsn) as chosen:
        applied = migrate(chosen, schema)
        access = give_access(chosen, schema)
    for one in applied:
        say(f"applied {one}")
    if not applied:
        say(f"schema {schema} is up to date")
    for role in access.made:
        say(f"made role {role}")
    for lack in access.lacking:
        say(lack, err=True)


@click.command("drift")
@database_options
@as_json
def drift_command(dsn: str | None, schema: str, as_json: bool) -> None:  # noqa: FBT001  click's way
    """Name what differs in the live schema.

    It is compared with what the migrations make. Exits with 1 if anything differs.
    """
    with database(dsn, schema) as chosen, psycopg.connect(chosen) as connection:
        differences = drift(connection, schema)
    if as_json:
        click.echo(to_json([dataclasses.asdict(one) for one in differences]))
    else:
        for one in differences:
            say(str(one))
        if not differences:
            say(f"schema {schema}: no drift")
    sys.exit(1 if differences else 0)


commands = (drift_command, migrate_command)
