"""`jobspec compile`: what compiled jobs become elsewhere, as JSON."""

from __future__ import annotations

import click

from jobspec.cli.shared import PATHS
from jobspec.compile import compile  # noqa: A004  the word for what it does
from jobspec.targets import engine


@click.command("compile")
@PATHS
def command(paths: tuple[str, ...]) -> None:
    """Compile specs and print the jobs as JSON."""
    click.echo(engine.render(compile(paths)), nl=False)
