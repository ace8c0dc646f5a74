"""`jobspec check`: everything that is wrong with specs, in one of the formats."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import click

from jobspec import report
from jobspec.cli.progress import watched
from jobspec.cli.shared import IMPORT, PATHS, counted, specs_of
from jobspec.compile import Examined, examine
from jobspec.diagnostics import Severity
from jobspec.settings import FoundSettings, fault_of_pattern, find_settings
from jobspec.targets.unsupported import TARGETS, Target

FOR_PEOPLE = ("full", "concise")


@click.command("check")
@PATHS
@click.option(
    "--format",
    "format_",
    type=click.Choice(report.FORMATS),
    default="full",
    show_default=True,
    help="For people, programs, or a service that shows findings beside the code.",
)
@click.option(
    "--select", multiple=True, metavar="CODES", help="Of JS2 and JS4 show only these: JS4,JS203."
)
@click.option("--ignore", multiple=True, metavar="CODES", help="Of JS2 and JS4 show all but these.")
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
@click.option(
    "--target", type=click.Choice(TARGETS), help="Find options that it can't honour, too."
)
@IMPORT
def command(
    paths: tuple[str, ...],
    format_: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict: bool,  # noqa: FBT001  click's way
    target: Target | None,
    import_: bool,  # noqa: FBT001
) -> None:
    """Check specs and report everything that is wrong.

    PATHS are files, directories, globs, - for standard input, or Python modules. A module, such as
    myapp.jobs, is imported. Without PATHS those of [tool.jobspec] in
    pyproject.toml are checked; --select, --ignore and --target take the place of what it says.

    Codes other than JS2 and JS4 tell what makes a spec unreadable, and are always shown.

    Exits with 1 if anything is wrong, also if there is no job at all.
    """
    found = _with_flags(find_settings(), _patterns(select), _patterns(ignore))
    specs = specs_of(paths, found)
    examined = examine(specs, import_=import_, target=target, found=found, watch=watched)
    click.echo(_rendered(examined, format_), nl=False)
    click.echo(_summary(examined), err=format_ not in FOR_PEOPLE)
    failing = examined.findings if strict else _errors(examined)
    sys.exit(1 if failing else 0)


def _patterns(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the codes of an option, which may be given several times and hold commas."""
    patterns = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    for fault in filter(None, map(fault_of_pattern, patterns)):
        raise click.UsageError(fault)
    return patterns


def _with_flags(
    found: FoundSettings, select: tuple[str, ...], ignore: tuple[str, ...]
) -> FoundSettings:
    settings = found.settings
    settings = replace(settings, select=select or settings.select, ignore=ignore or settings.ignore)
    return replace(found, settings=settings)


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
    return sys.stdout is not None and sys.stdout.isatty()  # None where it was closed


def _errors(examined: Examined) -> int:
    return sum(found.severity is Severity.ERROR for found in examined.findings)


def _summary(examined: Examined) -> str:
    """Return one line such as `3 errors, 1 warning in 2 of 4 files`."""
    files = len(examined.files)
    if not examined.findings:
        jobs = len(examined.jobs)
        return f"{counted(jobs, 'job')} in {counted(files, 'file')}: no problems found"
    errors = _errors(examined)
    counts = ((errors, "error"), (len(examined.findings) - errors, "warning"))
    found = ", ".join(counted(number, word) for number, word in counts if number)
    faulty = len({one.source.file for one in examined.findings})
    return f"{found} in {faulty} of {counted(max(files, faulty), 'file')}"
