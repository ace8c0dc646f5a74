"""The calls that the reference does not allow in the condition of a cancellation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.cel.macros import Macro, macro_of
from jobspec.cel.tree import Binary, Call, List, Map, Message, Node, children

if TYPE_CHECKING:
    from jobspec.source import Span

_ALLOWED = frozenset({"int", "uint", "double", "date", "duration", "now_plus", "now_minus"})


def forbidden_calls(root: Node) -> tuple[tuple[str, Span], ...]:
    """Return the functions and macros, by name and place, that a cancellation can't call.

    Numbers and times may be converted; everything else may not be called, `in` included. As in the
    reference, what stands in a list, a map or a macro's arguments, and what a method is called on,
    is not looked at.
    """
    found: list[tuple[str, Span]] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting.extend(reversed(_looked_at(node)))
        match node:
            case Call(function=name, function_span=span) if name not in _ALLOWED or node.target:
                found.append((name, span))
            case Binary(operator="in", operator_span=span):
                found.append(("in", span))
            case _:
                pass
    return tuple(sorted(found, key=lambda call: call[1]))


def _looked_at(node: Node) -> tuple[Node, ...]:
    match node:
        case List() | Map() | Message():
            return ()
        case Call(arguments=arguments):
            return () if macro_of(node) not in (None, Macro.HAS) else arguments
        case _:
            return children(node)
