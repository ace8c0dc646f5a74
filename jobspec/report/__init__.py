"""Findings as text: one module for each format, all over the same `Diagnostic`s.

A format is a module with one function, `render(findings, files)`. It is imported when it is asked
for, so that a plain check does not pay for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobspec.diagnostics import Diagnostic

FORMATS = ("full", "concise", "json", "github", "sarif", "junit")


class _Format(Protocol):
    def render(self, findings: Sequence[Diagnostic], files: Sequence[str]) -> str: ...


def render(name: str, findings: Sequence[Diagnostic], files: Sequence[str]) -> str:
    """Return the findings in one of `FORMATS`.

    `files` names everything that was looked at, with or without findings, in the order it was
    read. The text ends with a line break unless it is empty. Raises `KeyError` for a format that
    does not exist.
    """
    if name not in FORMATS:
        raise KeyError(name)
    return cast("_Format", import_module(f"jobspec.report.{name}")).render(findings, files)
