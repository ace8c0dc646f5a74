"""Handlers, imported to see that they are there: only where a check may run code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.imports import NotImportedError, imported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobspec.spec.fields import Findings
    from jobspec.spec.rules import ReadJob


def check_handlers(jobs: Iterable[ReadJob], findings: Findings) -> None:
    """Report handlers that can't be imported, or can't be called."""
    for read in jobs:
        handler = read.job.handler
        fault = _fault(handler) if isinstance(handler, str) else None
        if fault is not None:
            help_ = "correct it, or else install its module or start in the folder that it is in"
            findings.report("JS317", read.fields.node_of("handler"), fault, help_)


def _fault(handler: str) -> str | None:
    try:
        found = imported(handler)
    except NotImportedError as error:
        return str(error)
    return None if callable(found) else f"`{handler}` can't be called"
