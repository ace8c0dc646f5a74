"""One line a finding: `file:line:column: severity[code]: message`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.diagnostics import Diagnostic, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence


def render(findings: Sequence[Diagnostic], files: Sequence[str]) -> str:  # noqa: ARG001  one signature for all formats
    """Return a line for each finding."""
    return "".join(f"{one_line(found)}\n" for found in findings)
