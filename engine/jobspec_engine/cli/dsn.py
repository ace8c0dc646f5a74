"""`jobspec dsn`: which database the commands use, for `psql` and other programs."""

from __future__ import annotations

import signal
from contextlib import suppress

import click
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobspec_engine.cli.options import server, server_option
from jobspec_engine.embedded import running_dsn

_NOT_RUNNING = (
    "the bundled Postgres is not running: it does while a worker or another command uses it."
    " `jobspec dsn --keep` starts it, and keeps it until Ctrl-C"
)


# Its own, and that of the key of a client's certificate.
_PASSWORDS = {"password", "sslpassword"}


@click.command("dsn")
@server_option
@click.option("--show-password", is_flag=True, help="Print a password as it is, and not as ***.")
@click.option("--keep", is_flag=True, help="Start the bundled Postgres; keep it until Ctrl-C.")
def dsn_command(dsn: str | None, show_password: bool, keep: bool) -> None:  # noqa: FBT001  click's way
    """Print the address of the database that all commands use.

    It is that of --dsn or JOBSPEC_DSN, or else of the bundled Postgres while that is running:
    psql "$(jobspec dsn)"
    """
    if keep and dsn is not None:
        raise click.UsageError("--keep is for the bundled Postgres; unset --dsn and JOBSPEC_DSN")
    if keep:
        _keep()
        return
    found = running_dsn() if dsn is None else dsn
    if found is None:
        raise click.ClickException(_NOT_RUNNING)
    click.echo(found if show_password else _masked(found))


def _keep() -> None:
    with server(None) as found, suppress(KeyboardInterrupt):
        click.echo(found)
        signal.pause()


def _masked(dsn: str) -> str:
    """Return an address without its passwords; one that has none stays as it is written."""
    hidden = dict.fromkeys(_PASSWORDS & conninfo_to_dict(dsn).keys(), "***")
    return make_conninfo(dsn, **hidden) if hidden else dsn


commands = (dsn_command,)
