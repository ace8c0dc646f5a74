"""The command `jobspec`: arguments, exit codes, nothing else.

Exit codes: 0 where all is well, 1 for findings, 2 for misuse of the command itself.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from jobspec import report
from jobspec.compile import Examined, examine
from jobspec.compile import compile as compiled
from jobspec.diagnostics import RULES, CompileError, Severity
from jobspec.spec import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

PATHS = click.argument("paths", nargs=-1, required=True, metavar="PATHS...")
FOR_PEOPLE = ("full", "concise")


class _Commands(click.Group):
    """Our own commands, and those of installed packages such as the engine.

    The latter come from the entry point group `jobspec.commands`, whose values are sequences of
    click commands. They are looked for only when a command is not ours.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or _installed().get(cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_installed()})

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
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a key may hold what a terminal can't


@main.command()
@PATHS
@click.option(
    "--format", "format_", type=click.Choice(report.FORMATS), default="full", show_default=True
)
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
def check(paths: tuple[str, ...], format_: str, strict: bool) -> None:  # noqa: FBT001  click's way
    """Check the specs in files, directories, globs, or standard input (-).

    Exits with 1 if anything is wrong, also if there is no job at all.
    """
    examined = examine(paths)
    click.echo(_rendered(examined, format_), nl=False)
    click.echo(_summary(examined), err=format_ not in FOR_PEOPLE)
    failing = examined.findings if strict else _errors(examined)
    sys.exit(1 if failing else 0)


@main.command()
@PATHS
def compile(paths: tuple[str, ...]) -> None:  # noqa: A001  the word for what it does
    """Compile specs and print the jobs as JSON."""
    from jobspec.targets import engine  # noqa: PLC0415  not needed by a check

    click.echo(engine.render(compiled(paths)), nl=False)


@main.command()
@click.argument("code")
def explain(code: str) -> None:
    """Explain a code, such as JS301: what it finds, why, and what to write instead."""
    from importlib.resources import files  # noqa: PLC0415  slow, and not needed by a check

    names = {rule.name: rule.code for rule in RULES.values()}
    known = names.get(code, code.upper())
    if known not in RULES:
        advice = suggestion(code, (*RULES, *names)) or "see docs/diagnostics for all of them"
        raise click.UsageError(f"there is no code `{code}`; {advice}")
    page = files("jobspec") / "explanations" / f"{known}.md"
    click.echo(page.read_text(encoding="utf-8"), nl=False)


def _rendered(examined: Examined, format_: str) -> str:
    if format_ == "full" and _is_coloured():
        from jobspec.report import full  # noqa: PLC0415  formats are imported when asked for

        return full.render(examined.findings, examined.files, full.COLOURED)
    return report.render(format_, examined.findings, examined.files)


def _is_coloured() -> bool:
    """Tell whether to colour: on a terminal, unless it or the user can't have it (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return _is_terminal() and not plain


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _errors(examined: Examined) -> int:
    return sum(found.severity is Severity.ERROR for found in examined.findings)


def _summary(examined: Examined) -> str:
    """Return one line such as `3 errors, 1 warning in 2 of 4 files`."""
    files = len(examined.files)
    if not examined.findings:
        jobs = len(examined.jobs)
        return f"{_counted(jobs, 'job')} in {_counted(files, 'file')}: no problems found"
    errors = _errors(examined)
    counts = ((errors, "error"), (len(examined.findings) - errors, "warning"))
    found = ", ".join(_counted(number, word) for number, word in counts if number)
    faulty = len({one.source.name for one in examined.findings})
    return f"{found} in {faulty} of {_counted(max(files, faulty), 'file')}"


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
