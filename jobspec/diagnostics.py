"""What can be wrong with a spec: one structure, one table of codes, two errors.

A code is never reused and never changes its meaning. `JS1xx` is syntax, `JS2xx` names and types,
`JS3xx` the shape of a spec, `JS4xx` meaning and traps. Each has a page in `explanations/`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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

    `message` is one lower-case line that says what is wrong there; `help` says what to do. What
    can't be printed of a text that a message quotes, such as a line break, is told as `U+000A`.
    `span` lies in `source`, the text that a person edits.
    """

    code: str
    severity: Severity
    message: str
    source: Source
    span: Span
    help: str | None = None
    related: tuple[Related, ...] = ()

    def __post_init__(self) -> None:
        if not self.message.isprintable():
            object.__setattr__(self, "message", printable(self.message))

    @property
    def name(self) -> str:
        """The kebab-case name of the code."""
        return RULES[self.code].name

    def moved(self, source: Source, span: Span) -> Diagnostic:
        """Return the same finding at another place: where a person edits the text it is about."""
        return replace(self, source=source, span=span)


def printable(text: str) -> str:
    """Return a text with what can't be printed told by its number, as `U+000A`."""
    return "".join(char if char.isprintable() else f"U+{ord(char):04X}" for char in text)


class CompileError(ValueError):
    """A spec that can't be compiled. `diagnostics` holds everything found, in file order."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(told(self.diagnostics))


def one_line(found: Diagnostic) -> str:
    """Return `file:line:column: severity[code]: message`, as editors and logs like it."""
    place = place_of(found.source, found.span)
    return f"{place}: {found.severity.value}[{found.code}]: {found.message}"


def place_of(source: Source, span: Span) -> str:
    """Return `file:line:column`, or of a text that was made of a declaration its name alone.

    Such a text has no lines that anybody could look up.
    """
    name = printable(source.name)
    line, column = source.position(span.start)
    return name if source.is_made else f"{name}:{line}:{column}"


def told(findings: Iterable[Diagnostic]) -> str:
    """Return findings as the text of an error: each on a line, and its help on the next."""
    return "\n".join(
        one_line(found) + (f"\n  help: {found.help}" if found.help else "") for found in findings
    )


def in_order(findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return findings in the order everything shows them: by file, by place, by code."""
    return tuple(sorted(findings, key=lambda found: (found.source.name, found.span, found.code)))


def _table(*rules: Rule) -> dict[str, Rule]:
    return {rule.code: rule for rule in rules}


RULES: dict[str, Rule] = _table(
    # JS101-JS139 key templates
    Rule("JS101", "empty-key"),
    Rule("JS102", "unclosed-string"),
    Rule("JS103", "illegal-escape"),
    Rule("JS104", "special-string-in-key"),
    Rule("JS105", "missing-plus"),
    Rule("JS106", "dangling-plus"),
    Rule("JS107", "outside-event-data"),
    Rule("JS108", "no-field"),
    Rule("JS109", "reserved-field"),
    Rule("JS110", "function-call-in-key"),
    Rule("JS111", "parentheses-in-key"),
    Rule("JS112", "indexing-in-key"),
    Rule("JS113", "number-in-key"),
    Rule("JS114", "operator-in-key"),
    Rule("JS115", "constant-in-key"),
    Rule("JS116", "collection-in-key"),
    Rule("JS117", "comment-in-key"),
    Rule("JS118", "leading-dot"),
    Rule("JS119", "optional-field-in-key"),
    Rule("JS120", "placeholder-in-key"),
    Rule("JS121", "wrong-quotes"),
    Rule("JS122", "broken-path"),
    Rule("JS123", "unexpected-character"),
    # JS140-JS149 conditions
    Rule("JS140", "not-an-expression"),
    Rule("JS141", "unclosed-quote"),
    Rule("JS142", "bad-literal"),
    Rule("JS143", "unknown-name"),
    Rule("JS144", "unknown-function"),
    Rule("JS145", "wrong-call"),
    Rule("JS146", "types-never-fit"),
    Rule("JS147", "misused-macro"),
    Rule("JS148", "expression-too-large"),
    Rule("JS149", "condition-never-holds", Severity.WARNING),
    # JS150-JS169 files: YAML and JSON
    Rule("JS150", "unreadable-file"),
    Rule("JS151", "not-utf-8"),
    Rule("JS152", "too-large"),
    Rule("JS153", "too-deep"),
    Rule("JS154", "too-many-aliases"),
    Rule("JS155", "empty-file"),
    Rule("JS156", "invalid-yaml"),
    Rule("JS157", "tab-indentation"),
    Rule("JS158", "invalid-json"),
    Rule("JS159", "duplicate-key"),
    Rule("JS160", "key-not-text"),
    Rule("JS161", "merge-key"),
    Rule("JS162", "unknown-tag"),
    Rule("JS163", "several-documents"),
    Rule("JS164", "undefined-alias"),
    Rule("JS165", "forbidden-character"),
    Rule("JS166", "number-out-of-range"),
    Rule("JS167", "no-files"),
    Rule("JS168", "unreadable-module"),
    # JS170-JS179 durations, JS180-JS189 cron schedules
    Rule("JS170", "invalid-duration"),
    Rule("JS180", "invalid-cron"),
    # JS2xx names and types
    Rule("JS201", "undeclared-event", Severity.WARNING),
    Rule("JS202", "invalid-schema"),
    Rule("JS203", "unknown-event-field"),
    Rule("JS204", "field-of-no-object"),
    Rule("JS205", "field-may-be-missing", Severity.WARNING),
    Rule("JS206", "field-may-be-null", Severity.WARNING),
    Rule("JS207", "numeric-field-in-key", Severity.WARNING),
    Rule("JS208", "numbers-added-in-key"),
    Rule("JS209", "boolean-field-in-key", Severity.WARNING),
    Rule("JS210", "collection-field-in-key"),
    Rule("JS211", "mixed-field-in-key", Severity.WARNING),
    Rule("JS212", "key-never-adds-up"),
    Rule("JS213", "separator-in-field", Severity.WARNING),
    Rule("JS214", "event-declared-twice"),
    Rule("JS215", "unknown-event-part"),
    # JS3xx the shape of a spec
    Rule("JS301", "unknown-field"),
    Rule("JS302", "missing-field"),
    Rule("JS303", "wrong-type"),
    Rule("JS304", "unknown-choice"),
    Rule("JS305", "out-of-range"),
    Rule("JS306", "too-many-items"),
    Rule("JS307", "empty-text"),
    Rule("JS308", "text-too-long"),
    Rule("JS309", "duplicate-job-id"),
    Rule("JS310", "duplicate-trigger"),
    Rule("JS311", "trigger-of-no-kind"),
    Rule("JS312", "trigger-of-two-kinds"),
    Rule("JS313", "no-job"),
    Rule("JS314", "scope-without-key"),
    Rule("JS315", "field-of-other-trigger"),
    Rule("JS316", "not-a-handler"),
    Rule("JS317", "handler-not-found"),
    Rule("JS318", "field-of-other-policy"),
    Rule("JS319", "not-an-error-class"),
    Rule("JS320", "control-character-in-name"),
    Rule("JS330", "invalid-setting"),
    # JS4xx meaning and traps
    Rule("JS400", "debounce-timeout-below-period"),
    Rule("JS401", "rate-limit-overwritten"),
    Rule("JS402", "batch-conflict"),
    Rule("JS403", "call-in-cancellation"),
    Rule("JS404", "cron-never-fires"),
    Rule("JS405", "cron-at-clock-change", Severity.WARNING),
    Rule("JS406", "copied-job", Severity.WARNING),
    Rule("JS407", "cancels-every-run", Severity.WARNING),
    Rule("JS408", "no-trigger", Severity.WARNING),
    Rule("JS409", "concurrency-of-nothing", Severity.WARNING),
    Rule("JS410", "retry-maximum-below-delay"),
    Rule("JS411", "option-not-for-target"),
    Rule("JS412", "retry-after-finish", Severity.WARNING),
    Rule("JS413", "attempt-longer-than-finish", Severity.WARNING),
    Rule("JS414", "white-space-in-job-id", Severity.WARNING),
    Rule("JS415", "option-of-nothing", Severity.WARNING),
    Rule("JS416", "key-of-every-tick"),
    # JS430-JS439 traps of keys
    Rule("JS430", "fields-without-separator", Severity.WARNING),
    Rule("JS431", "constant-key", Severity.WARNING),
    Rule("JS432", "constant-idempotency-key"),
    Rule("JS433", "backslash-in-key", Severity.WARNING),
    Rule("JS434", "escapes-turned-on", Severity.WARNING),
    Rule("JS435", "field-beside-its-own"),
    Rule("JS436", "slow-key", Severity.WARNING),
    Rule("JS437", "endless-key"),
    Rule("JS438", "field-of-no-tick"),
    Rule("JS439", "field-missing-at-ticks", Severity.WARNING),
    # JS440-JS449 comments that silence findings
    Rule("JS440", "ignore-without-reason"),
    Rule("JS441", "ignore-of-unknown-code"),
    Rule("JS442", "unused-ignore", Severity.WARNING),
    Rule("JS443", "unreadable-ignore"),
    Rule("JS444", "ignore-of-syntax"),
)
