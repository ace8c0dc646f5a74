"""`[tool.jobspec]` in pyproject.toml: what a project checks, and which findings it wants.

The nearest pyproject.toml counts, from the working directory upwards.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from jobspec.diagnostics import RULES, CompileError, Diagnostic
from jobspec.ignores import can_be_ignored
from jobspec.load import is_there
from jobspec.source import Source, Span
from jobspec.spec import suggestion
from jobspec.spec.reading import ON_MISSING
from jobspec.spec.wording import listed
from jobspec.targets.unsupported import TARGETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jobspec.targets.unsupported import Target

Choice = TypeVar("Choice", bound=str)

FILE, TABLE, NAME = "pyproject.toml", "tool.jobspec", "jobspec"

# What is found of a path by itself, not of a spec that it leads to.
_NO_SPEC = frozenset({"JS150", "JS167", "JS168"})


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project wants of a check.

    `select` and `ignore` hold codes, names of codes, or beginnings of codes such as `JS4`. With an
    empty `select` all findings are wanted. Neither touches what makes a spec unreadable, which is
    always shown. `paths` are checked where a command is given none. `on_missing` counts for jobs
    that don't say it themselves. What `target` can't honour is an error, wherever specs are read.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    on_missing: Literal["skip", "reject"] | None = None
    target: Target | None = None

    def wants(self, found: Diagnostic) -> bool:
        """Tell whether to show a finding."""
        if not can_be_ignored(found.code):
            return True
        selected = not self.select or any(_covers(one, found.code) for one in self.select)
        return selected and not any(_covers(one, found.code) for one in self.ignore)


def _covers(pattern: str, code: str) -> bool:
    return code.startswith(pattern) or RULES[code].name == pattern


def fault_of_pattern(pattern: str) -> str | None:
    """Return what is wrong with an entry of `select` or `ignore`, if anything is."""
    codes = [code for code in RULES if _covers(pattern, code)] if pattern else []
    if not codes:
        names = tuple(rule.name for rule in RULES.values())
        advice = suggestion(pattern, (*RULES, *names))
        return f"there is no code `{pattern}`" + (f"; {advice}" if advice else "")
    if not any(map(can_be_ignored, codes)):
        return f"`{pattern}` is always shown: only `JS2` and `JS4` are selected or ignored"
    return None


class OfProject(Enum):
    """What a project names, where a caller names nothing. A `None` is more likely a mistake."""

    PATHS = "paths"


@dataclass(frozen=True, slots=True)
class FoundSettings:
    """The settings of a project, what is wrong with them, and where each of their paths stands."""

    settings: Settings = Settings()
    findings: tuple[Diagnostic, ...] = ()
    places: Mapping[str, tuple[Source, Span]] = field(
        default_factory=dict[str, tuple[Source, Span]]
    )

    def placed(self, found: Diagnostic) -> Diagnostic:
        """Return a finding, one about a path that leads to no spec where the path is written."""
        place = self.places.get(found.source.name)
        if place is None or found.code not in _NO_SPEC:
            return found
        name = f"`{found.source.name}`"
        message = found.message if name in found.message else f"{name}: {found.message}"
        return replace(found, message=message, source=place[0], span=place[1])


def find_settings(start: Path | None = None) -> FoundSettings:
    """Return the settings that hold in a directory, by default the working one.

    What is wrong with them is a finding, and does not count.
    """
    try:
        folder = (start or Path()).resolve()
    except FileNotFoundError:  # the working directory was deleted
        return FoundSettings()
    for parent in (folder, *folder.parents):
        try:
            text = (parent / FILE).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):  # a file that is not for us to judge
            continue
        return _read(text, parent) if TABLE in text else FoundSettings()
    return FoundSettings()


def project_paths() -> tuple[str, ...]:
    """Return the specs that a project names by `paths`, in `[tool.jobspec]` of its pyproject.toml.

    That is the nearest one, from the working directory upwards; without `paths` there are none.
    Raises `CompileError` where the settings are wrong and so may have named some.
    """
    found = find_settings()
    if found.findings and not found.settings.paths:
        raise CompileError(found.findings)
    return found.settings.paths


def _read(text: str, folder: Path) -> FoundSettings:
    import tomllib  # noqa: PLC0415  few projects have settings

    reading = _Reading(Source(os.path.relpath(folder / FILE), text))
    try:
        tools: object = tomllib.loads(text).get("tool")
    except tomllib.TOMLDecodeError as error:
        reading.report(TABLE, f"this file is not TOML: {_lowered(str(error))}")
        return FoundSettings(findings=tuple(reading.findings))
    except ValueError:  # where it is Python does not say
        reading.report(TABLE, "this file has a number of more digits than can be read")
        return FoundSettings(findings=tuple(reading.findings))
    ours: object = cast("dict[str, object]", tools).get(NAME, {}) if isinstance(tools, dict) else {}
    if not isinstance(ours, dict):
        reading.report(NAME, f"`{TABLE}` must be a table", f"write `[{TABLE}]` above the settings")
        ours = {}
    table = cast("dict[str, Any]", ours)
    settings = reading.settings(table, folder)
    return FoundSettings(settings, tuple(reading.findings), reading.places)


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


class _Reading:
    """The reading of one table of settings."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.findings: list[Diagnostic] = []
        self.places: dict[str, tuple[Source, Span]] = {}

    def report(self, name: str, message: str, help_: str | None = None) -> None:
        """Add a finding about a setting, where it stands as far as that can be told."""
        rule = RULES["JS330"]
        span = _place(self.source.text, name)
        self.findings.append(
            Diagnostic(rule.code, rule.severity, message, self.source, span, help_)
        )

    def settings(self, table: dict[str, Any], folder: Path) -> Settings:
        known = tuple(one.name for one in fields(Settings))
        for name in table.keys() - set(known):
            help_ = suggestion(name, known) or f"there are {listed(known, 'and')}"
            self.report(name, f"`{name}` is not a setting", help_)
        return Settings(
            select=self._patterns("select", table),
            ignore=self._patterns("ignore", table),
            paths=self._paths(table, folder),
            on_missing=self._choice("on_missing", ON_MISSING, table),
            target=self._choice("target", TARGETS, table),
        )

    def _paths(self, table: dict[str, Any], folder: Path) -> tuple[str, ...]:
        """Return the paths as seen from the working directory, and note where each stands."""
        written = self._texts("paths", table)
        paths = tuple(_placed(path, folder) for path in written)
        for path, text in zip(paths, written, strict=True):
            self.places[path] = self.source, _place_of_item(self.source.text, "paths", text)
        return paths

    def _patterns(self, name: str, table: dict[str, Any]) -> tuple[str, ...]:
        patterns = self._texts(name, table)
        faults = [(one, fault_of_pattern(one)) for one in patterns]
        for _, fault in faults:
            if fault:
                self.report(name, fault)
        return tuple(one for one, fault in faults if fault is None)

    def _texts(self, name: str, table: dict[str, Any]) -> Sequence[str]:
        value = table.get(name, [])
        if isinstance(value, list):
            texts = cast("list[object]", value)
            if all(isinstance(one, str) for one in texts):
                return cast("list[str]", texts)
        self.report(name, f"`{name}` must be a list of texts", f'write `{name} = ["..."]`')
        return ()

    def _choice(
        self, name: str, choices: tuple[Choice, ...], table: dict[str, Any]
    ) -> Choice | None:
        value = table.get(name)
        for choice in choices:
            if value == choice:
                return choice
        if value is not None:
            self.report(name, f"`{name}` can't be `{value}`", f"write {listed(choices)}")
        return None


def _placed(path: str, folder: Path) -> str:
    """Return a path of a project as seen from the working directory; a module stays as it is."""
    there = folder / path
    return os.path.relpath(there) if "/" in path or is_there(there) else path


def _place(text: str, name: str) -> Span:
    """Return where a setting stands, or the heading of the table, or the start of the file."""
    heading = re.search(r"^[ \t]*\[\s*tool\s*\.\s*jobspec\s*\]", text, re.MULTILINE)
    if heading is None:
        return Span(0, 0)
    setting = re.compile(rf"^[ \t]*(\"?{re.escape(name)}\"?)\s*=", re.MULTILINE)
    found = setting.search(text, heading.end())
    return Span(*(found.span(1) if found else heading.span()))


def _place_of_item(text: str, name: str, item: str) -> Span:
    """Return where an item of a setting's list stands, or the setting where it is not found."""
    setting = _place(text, name)
    quoted = re.compile("|".join(re.escape(f"{quote}{item}{quote}") for quote in "\"'"))
    found = quoted.search(text, setting.end)
    return Span(*found.span()) if found else setting
