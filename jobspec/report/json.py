"""Findings for programs: one JSON document with every place as lines and columns from 1."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobspec.diagnostics import Diagnostic
    from jobspec.source import Source, Span


def render(findings: Sequence[Diagnostic], files: Sequence[str]) -> str:
    """Return `{"files": [...], "findings": [...]}`; ends are exclusive, as spans are."""
    document = {"files": list(files), "findings": [_finding(found) for found in findings]}
    return json.dumps(document, indent=2) + "\n"


def _finding(found: Diagnostic) -> dict[str, object]:
    return {
        "code": found.code,
        "name": found.name,
        "severity": found.severity.value,
        "message": found.message,
        "help": found.help,
        **_place(found.source, found.span),
        "related": [
            {"message": other.message, **_place(other.source, other.span)}
            for other in found.related
        ],
    }


def _place(source: Source, span: Span) -> dict[str, object]:
    file, start, end = source.place(span)
    return {
        "file": file,
        "start": {"line": start.line, "column": start.column},
        "end": {"line": end.line, "column": end.column},
    }
