"""Why a text is not a key template: each fault by name, its place, and what to write instead.

The grammar alone decides what a key template is; this only explains its refusals.
"""

from __future__ import annotations

from jobspec.diagnostics import RULES, Diagnostic
from jobspec.keys.fault import Fault
from jobspec.keys.reader import find_faults
from jobspec.source import Source, Span

SOURCE_NAME = "<key>"


def refusals(text: str) -> tuple[Diagnostic, ...]:
    """Return what is wrong with a refused text, in text order, never nothing."""
    source, verdict = Source(SOURCE_NAME, text), _verdict(text)
    faults = find_faults(text) or [_unnamed(text)]
    return tuple(_diagnostic(fault, source, verdict) for fault in sorted(faults, key=_place))


def _place(fault: Fault) -> Span:
    return fault.span


def _diagnostic(fault: Fault, source: Source, verdict: str) -> Diagnostic:
    severity = RULES[fault.code].severity
    advice = f"{fault.advice} ({verdict})"
    return Diagnostic(fault.code, severity, fault.message, source, fault.span, advice)


def _unnamed(text: str) -> Fault:
    """Tell of a text whose construct has no name here: the whole of it, then."""
    advice = "write fields and quoted texts joined by `+`"
    return Fault("JS123", "this is not a key", Span(0, len(text)), advice)


def _verdict(text: str) -> str:
    from jobspec.cel import check_expression  # noqa: PLC0415 - a second grammar, for refusals only

    found = check_expression(text)
    if found:
        return "CEL, the expression language of Inngest, does not allow it either"
    return "CEL, the expression language of Inngest, allows it; a key does not"
