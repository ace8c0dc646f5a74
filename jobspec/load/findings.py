"""How the readers say what is wrong with a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.diagnostics import RULES, Diagnostic, Related

if TYPE_CHECKING:
    from jobspec.source import Source, Span


def finding(
    code: str,
    message: str,
    source: Source,
    span: Span,
    advice: str | None = None,
    related: tuple[Related, ...] = (),
) -> Diagnostic:
    """Return the diagnostic of a code, with the severity of its rule; `advice` is its help."""
    return Diagnostic(code, RULES[code].severity, message, source, span, advice, related)


class UnreadableError(Exception):
    """A fault after which the rest of the file can't be read. Never leaves this package."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic
