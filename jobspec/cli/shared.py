"""What several commands share: the argument for specs, the settings, and how they count."""

from __future__ import annotations

import click

from jobspec.settings import FoundSettings, find_settings

PATHS = click.argument("paths", nargs=-1, metavar="[PATHS]...")
IMPORT = click.option(
    "--import", "import_", is_flag=True, help="Import handlers and models, which runs your code."
)


def specs_of(paths: tuple[str, ...], settings: FoundSettings | None = None) -> tuple[str, ...]:
    """Return the specs a command was given, or else those that the project's settings name."""
    found = find_settings() if settings is None else settings
    specs = paths or found.settings.paths
    if not specs and not found.findings:
        advice = "name files or directories, or set `paths` under [tool.jobspec] in pyproject.toml"
        raise click.UsageError(f"there is nothing to read: {advice}")
    return specs


def counted(number: int, word: str) -> str:
    """Return `1 job`, `1,200 jobs`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
