"""`jobspec diff`: what changes between two sets of jobs, and what that means."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from jobspec import report
from jobspec.cli.shared import specs_of
from jobspec.compile import Spec, examine
from jobspec.diagnostics import Severity
from jobspec.diff import Harm, differences
from jobspec.gitfiles import (
    GitError,
    exists,
    is_at_revision,
    is_revision,
    require_repository,
    sources_at,
)
from jobspec.ignores import can_be_ignored
from jobspec.load import is_there
from jobspec.modules import is_importable
from jobspec.report import changes as shown
from jobspec.settings import FoundSettings, find_settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobspec.jobs import CompiledJobs

HARMFUL = (Harm.RERUNS, Harm.STRANDS)
MISUSE = 2


@click.command("diff")
@click.argument("specs", nargs=-1, metavar="OLD NEW")
@click.option("--git", "revisions", metavar="REV..[REV]", help="Compare PATHS at two revisions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(specs: tuple[str, ...], revisions: str | None, as_json: bool) -> None:  # noqa: FBT001  click's way
    """Show what changes between two sets of specs.

    It says what each change means for what is in flight. OLD and NEW are what a check takes, or a
    path at a git revision, as git show has it:

    \b
    jobspec diff jobs.yaml new-jobs.yaml
    jobspec diff main:jobs.yaml jobs.yaml
    jobspec diff --git main..HEAD jobs/ more/jobs.yaml
    jobspec diff --git main.. jobs/          against the working directory

    Exits with 1 if something would run again or never run, 2 if one side can't be read.
    """  # noqa: D301  click knows the mark of lines by the character itself
    old, new = _at_revisions(revisions, specs) if revisions else _two(specs)
    settings = find_settings()
    found = differences(_jobs(old, settings), _jobs(new, settings))
    click.echo(shown.render_json(found) if as_json else shown.render(found), nl=False)
    sys.exit(1 if any(change.harm in HARMFUL for change in found) else 0)


def _two(specs: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if len(specs) != 2:
        raise click.UsageError("name two specs, OLD and NEW, or revisions by --git")
    return specs[:1], specs[1:]


def _at_revisions(
    revisions: str, paths: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the same paths at both revisions; without a second one as they are now."""
    old, dots, new = revisions.partition("..")
    if not old or not dots:
        raise click.UsageError("write the revisions as `main..HEAD`, or `main..` for one and now")
    _require_repository()
    paths = specs_of(paths)
    before, after = _at(old, paths), _at(new, paths) if new else paths
    if not before and not after:
        raise click.UsageError(f"neither revision has {', '.join(paths)}")
    return before, after


def _require_repository() -> None:
    try:
        require_repository()
    except GitError as error:
        raise click.UsageError(str(error)) from error


def _at(revision: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths that a revision has: specs that are new have no jobs before."""
    if not is_revision(revision):
        raise click.UsageError(f"git knows no revision `{revision}`")
    names = (f"{revision}:./{path}" for path in paths)
    return tuple(name for name in names if exists(name))


def _jobs(names: tuple[str, ...], settings: FoundSettings) -> CompiledJobs:
    """Return the jobs of one side. What only a check minds does not keep them from comparison."""
    try:
        specs = [spec for name in names for spec in _specs(name)]
    except GitError as error:
        raise click.UsageError(str(error)) from error
    examined = examine(specs, found=settings)
    faults = [
        found
        for found in examined.findings
        if found.severity is Severity.ERROR
        and not can_be_ignored(found.code)
        and found.code != "JS313"  # a side without jobs can be compared
    ]
    if faults:
        click.echo(report.render("full", faults, ()), nl=False, err=True)
        sys.exit(MISUSE)
    return examined.jobs


def _specs(name: str) -> Iterable[Spec]:
    if is_at_revision(name):
        return sources_at(name)
    head, colon, _ = name.partition(":")
    if colon and not is_there(name) and not is_importable(head):
        _require_repository()
    return [name]
