"""The group of all commands: ours, and those of installed packages such as the engine."""

from __future__ import annotations

import sys
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING

import click

from jobspec import report
from jobspec.diagnostics import CompileError
from jobspec.spec import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

OWN = ("check", "compile", "diff", "explain", "key")
"""Our commands. Each is the `command` of a module of its name, imported when it is asked for."""

INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


class _Commands(click.Group):
    """Our own commands and those of the entry point group `jobspec.commands`.

    The values of the latter are sequences of click commands. They are looked for only when a
    command is not ours.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in OWN:
            command: click.Command = import_module(f"jobspec.cli.{cmd_name}").command
            return command
        return super().get_command(ctx, cmd_name) or _installed().get(cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*OWN, *super().list_commands(ctx), *_installed()})

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None:
            ctx.fail(_no_such_command(args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; specs that it can't compile are shown as a check shows them."""
        try:
            return super().invoke(ctx)
        except CompileError as error:
            click.echo(report.render("full", error.diagnostics, ()), nl=False, err=True)
            sys.exit(1)
        except KeyboardInterrupt:
            click.echo("\ninterrupted", err=True)
            sys.exit(INTERRUPTED)


def _installed() -> dict[str, click.Command]:
    """Return the commands of other packages, by name, without those that lack what they need."""
    from importlib.metadata import entry_points  # noqa: PLC0415  slow, and not needed by a check

    found: dict[str, click.Command] = {}
    for entry_point in entry_points(group="jobspec.commands"):
        try:
            commands: Sequence[click.Command] = entry_point.load()
        except ModuleNotFoundError:  # the extra that it belongs to is not installed
            continue
        found |= {command.name: command for command in commands if command.name}
    return found


def _no_such_command(name: str, known: Sequence[str]) -> str:
    advice = suggestion(name, tuple(known))
    if advice is None and "worker" not in known:
        advice = "the engine's commands need `pip install 'jobspec-kit[engine]'`"
    return f"there is no command `{name}`" + (f"; {advice}" if advice else "")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jobspec-kit", message="jobspec %(version)s")
def main() -> None:
    """Check, compile and run background jobs described by specs."""
    for stream in (sys.stdout, sys.stderr):  # None where it was closed
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a key may hold what a terminal can't
