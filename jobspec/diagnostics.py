"""What can be wrong with a spec: one structure, one table of codes, two errors.

A code is never reused and never changes its meaning. `JS1xx` is syntax, `JS2xx` names and types,
`JS3xx` the shape of a spec, `JS4xx` meaning and traps. Each has a page in `explanations/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from jobspec.source import Source, Span


class Severity(Enum):
    """How much a finding weighs: an error makes a check fail."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of finding. `name` is its kebab-case name, kept as stable as its code."""

    code: str
    name: str
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that a finding is about, and what is there."""

    message: str
    source: Source
    span: Span


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: what is wrong, where, and what to do.

    `message` is one lower-case line that says what is wrong there; `help` says what to do.
    `span` lies in `source`, the text that a person edits.
    """

    code: str
    severity: Severity
    message: str
    source: Source
    span: Span
    help: str | None = None
    related: tuple[Related, ...] = ()

    @property
    def name(self) -> str:
        """The kebab-case name of the code."""
        return RULES[self.code].name

    def moved(self, source: Source, span: Span) -> Diagnostic:
        """Return the same finding at another place: where a person edits the text it is about."""
        return replace(self, source=source, span=span)


class CompileError(ValueError):
    """A spec that can't be compiled. `diagnostics` holds everything found, in file order."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(one_line(found) for found in self.diagnostics))


def one_line(found: Diagnostic) -> str:
    """Return `file:line:column: severity[code]: message`, as editors and logs like it."""
    line, column = found.source.position(found.span.start)
    place = f"{found.source.name}:{line}:{column}"
    return f"{place}: {found.severity.value}[{found.code}]: {found.message}"


def _table(*rules: Rule) -> dict[str, Rule]:
    return {rule.code: rule for rule in rules}


E_, W_ = Severity.ERROR, Severity.WARNING

RULES: dict[str, Rule] = _table(
    # JS101-JS139 key templates
    # JS140-JS149 conditions
    # JS150-JS169 files: YAML and JSON
    # JS170-JS179 durations, JS180-JS189 cron schedules
    # JS2xx names and types
    # JS3xx the shape of a spec
    # JS4xx meaning and traps
)
