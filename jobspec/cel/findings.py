"""Gathering what is wrong with one expression."""

from __future__ import annotations

from jobspec.diagnostics import RULES, Diagnostic, Related
from jobspec.source import Source, Span

SOURCE_NAME = "<expression>"


class CelError(ValueError):
    """A text that is no CEL expression. `diagnostics` says why, in the order of the text."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.diagnostics = diagnostics
        super().__init__("; ".join(found.message for found in diagnostics))


class Findings:
    """A list of diagnostics about one text, which grows while the text is checked."""

    def __init__(self, text: str) -> None:
        self.source = Source(SOURCE_NAME, text)
        self._found: list[Diagnostic] = []

    def add(
        self,
        code: str,
        message: str,
        span: Span,
        help_: str | None = None,
        opened: Span | None = None,
    ) -> None:
        """Note a finding; `opened` is the bracket that it is about, where there is one."""
        related = () if opened is None else (Related("opened here", self.source, opened),)
        severity = RULES[code].severity
        self._found.append(Diagnostic(code, severity, message, self.source, span, help_, related))

    def __bool__(self) -> bool:
        return bool(self._found)

    def sorted(self) -> tuple[Diagnostic, ...]:
        """Return the findings in the order of the text."""
        return tuple(sorted(self._found, key=lambda found: found.span))

    def raise_if_any(self) -> None:
        """Raise a CelError with the findings, where there are any."""
        if self._found:
            raise CelError(self.sorted())


def shorten(text: str, limit: int = 60) -> str:
    """Return a text cut to one line of at most `limit` characters, with an ellipsis where cut."""
    line = text.split("\n", 1)[0].rstrip("\r")
    if len(line) > limit:
        line = line[: limit - 1]
    return line if line == text else line + "…"
