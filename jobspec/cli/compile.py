"""`jobspec compile`: what compiled jobs become elsewhere, as JSON."""

from __future__ import annotations

import sys

import click

from jobspec.cli.shared import IMPORT, PATHS, specs_of
from jobspec.compile import compile  # noqa: A004  the word for what it does
from jobspec.targets import TargetError, engine, inngest, schema


@click.command("compile")
@PATHS
@click.option(
    "--target",
    type=click.Choice(("engine", "inngest", "schema")),
    default="engine",
    show_default=True,
    help=(
        "The engine's typed jobs, the registration that the reference's SDK sends, or the JSON"
        " Schema of spec files, which needs no PATHS."
    ),
)
@IMPORT
@click.option(
    "--app",
    metavar="ID",
    default=inngest.APP,
    show_default=True,
    help="The id of the app (inngest).",
)
@click.option(
    "--url",
    metavar="URL",
    default=inngest.URL,
    show_default=True,
    help="Where it is served (inngest).",
)
def command(paths: tuple[str, ...], target: str, import_: bool, app: str, url: str) -> None:  # noqa: FBT001  click's way
    """Compile specs and print them as JSON.

    PATHS are those that jobspec check takes.

    Exits with 1 if anything is wrong, or if the target can't honour an option.
    """
    if target == "schema":
        click.echo(schema.render(), nl=False)
        return
    try:
        text = _compiled(specs_of(paths), target, import_=import_, app=app, url=url)
    except TargetError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    click.echo(text, nl=False)


def _compiled(specs: tuple[str, ...], target: str, *, import_: bool, app: str, url: str) -> str:
    if target == "engine":
        return engine.render(compile(specs, import_=import_, target="engine"))
    return inngest.render(compile(specs, import_=import_, target="inngest"), app=app, url=url)
