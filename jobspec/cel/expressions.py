"""What can be asked about an expression: the pipeline, read from top to bottom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from jobspec.cel.calls import forbidden_calls
from jobspec.cel.check import check_types
from jobspec.cel.findings import CelError, Findings
from jobspec.cel.paths import Path, paths_of
from jobspec.cel.shape import check_shape
from jobspec.cel.syntax import read
from jobspec.cel.tree import Binary, Node, Ternary, bare
from jobspec.cel.words import a_value
from jobspec.source import Span

if TYPE_CHECKING:
    from jobspec.diagnostics import Diagnostic

MAX_LENGTH = 100_000  # the reference's own limit, in code points

_RESULTS = {"boolean": ("bool",), "number": ("int", "uint", "double")}
_RESULT_HELP = {
    "boolean": "compare it, as in `… == 'pro'`",
    "number": "give a number of seconds, as in `event.data.plan == 'pro' ? 120 : 0`",
}


def parse(text: str) -> Node:
    """Return the tree of a CEL expression whose form the reference accepts.

    Names and types are not checked yet. Raises CelError where the text is no such expression; its
    diagnostics lie in a source of this text, named `<expression>`.
    """
    findings = Findings(text)
    if len(text) > MAX_LENGTH:
        message = f"the expression is longer than {MAX_LENGTH:,} characters"
        findings.add("JS148", message, Span(MAX_LENGTH, len(text)))
        findings.raise_if_any()
    tree = read(text)
    check_shape(tree, findings)
    findings.raise_if_any()
    return tree


def check_expression(text: str) -> tuple[Diagnostic, ...]:
    """Return why the reference refuses an expression at registration; nothing where it doesn't.

    The diagnostics lie in a source of this text, named `<expression>`, in its order.
    """
    findings = Findings(text)
    try:
        check_types(parse(text), findings)
    except CelError as error:
        return error.diagnostics
    return findings.sorted()


def check_condition(
    text: str, result: Literal["boolean", "number"] = "boolean"
) -> tuple[Diagnostic, ...]:
    """Return what is wrong with a condition, or with `priority.run`, whose result is a number.

    Beyond `check_expression` it warns of a result that is known to be of another kind: the
    reference accepts it at registration, and then the condition never holds.
    """
    findings = Findings(text)
    try:
        tree = parse(text)
    except CelError as error:
        return error.diagnostics
    found = check_types(tree, findings)
    if not findings and found.is_known and found.name not in _RESULTS[result] and not _skips(tree):
        message = f"this gives {a_value(found)}, never a {result}"
        findings.add("JS149", message, Span(0, len(text)), _RESULT_HELP[result])
    return findings.sorted()


def _skips(node: Node) -> bool:
    """Say whether the result comes from `&&` or `||`.

    Their type is boolean, but the reference skips a side that is missing from the event, and then
    gives the other one, whatever it is (as in conditions.jsonl).
    """
    node = bare(node)
    if isinstance(node, Ternary):
        return _skips(node.then) or _skips(node.otherwise)
    return isinstance(node, Binary) and node.operator in ("&&", "||")


def paths(text: str) -> tuple[Path, ...]:
    """Return the paths that an expression reads from an event; none where it can't be read."""
    try:
        return paths_of(parse(text))
    except CelError:
        return ()


def calls(text: str) -> tuple[tuple[str, Span], ...]:
    """Return the calls, by name and place, that keep an expression from being a cancellation's.

    Nothing where it can't be read: `check_condition` tells of that.
    """
    try:
        return forbidden_calls(parse(text))
    except CelError:
        return ()
