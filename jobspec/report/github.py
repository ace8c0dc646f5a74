"""Workflow commands that GitHub Actions turns into annotations of the changed lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobspec.diagnostics import Diagnostic

_IN_MESSAGES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES = _IN_MESSAGES | str.maketrans({":": "%3A", ",": "%2C"})


def render(findings: Sequence[Diagnostic], files: Sequence[str]) -> str:  # noqa: ARG001  one signature for all formats
    """Return a `::error` or `::warning` line for each finding."""
    return "".join(map(_finding, findings))


def _finding(found: Diagnostic) -> str:
    file, start, end = found.source.place(found.span)
    properties = {
        "file": file,
        "line": start.line,
        "endLine": end.line,
        "col": start.column,
        "endColumn": end.column,
        "title": f"{found.code} {found.name}",
    }
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    message = found.message if found.help is None else f"{found.message}\nhelp: {found.help}"
    return f"::{found.severity.value} {listed}::{message.translate(_IN_MESSAGES)}\n"


def _property(value: object) -> str:
    return str(value).translate(_IN_PROPERTIES)
