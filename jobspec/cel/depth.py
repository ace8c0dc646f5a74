"""How deep an expression may nest before the reference refuses it: 250, counted its way.

The reference counts twice. While it parses, it counts open invocations of each of its own grammar
rules: a bracket opens an expression, a right operand opens a comparison or a calculation anew, a
left operand does not. Afterwards it counts the nodes on a path through its tree, where a left
operand is as deep as any, but `&&`, `||`, negations, lists and parentheses are free. So a sum of
250 fields is refused, and so are 250 parentheses.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from jobspec.cel.tree import (
    Binary,
    Call,
    Entry,
    Field,
    Index,
    Message,
    Node,
    Select,
    Ternary,
    Unary,
    children,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT = 250
_RELATIONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "in"})


class _Slot(IntEnum):
    """Where a node stands: which of the reference's grammar rules reads it."""

    EXPRESSION = 0
    LOGIC = 1
    RELATION = 2
    SUM = 3
    MEMBER = 4


class _Place(NamedTuple):
    """A node, where it stands, and what is open around it."""

    node: Node
    slot: _Slot
    expressions: int = 0
    relations: int = 0
    sums: int = 0
    path: int = 0


def too_deep(root: Node) -> Node | None:
    """Return the first node that nests deeper than the reference allows, or None."""
    waiting = [_Place(root, _Slot.EXPRESSION)]
    while waiting:
        place = waiting.pop()
        entered = _enter(place)
        if max(entered[2:]) > LIMIT:
            return place.node
        waiting.extend(reversed(list(_inside(place, entered))))
    return None


def _enter(place: _Place) -> _Place:
    """Return the place with what reading its node opens."""
    node, slot, expressions, relations, sums, path = place
    own = _own_slot(node)
    return place._replace(
        expressions=expressions + (slot == _Slot.EXPRESSION),
        relations=relations + (slot <= _Slot.RELATION <= own),
        sums=sums + (slot <= _Slot.SUM <= own),
        path=path + _counts(node),
    )


def _own_slot(node: Node) -> _Slot:
    """Return the tightest rule that reads a node of this kind."""
    if isinstance(node, Ternary):
        return _Slot.EXPRESSION
    if not isinstance(node, Binary):
        return _Slot.MEMBER
    if node.operator in ("&&", "||"):
        return _Slot.LOGIC
    return _Slot.RELATION if node.operator in _RELATIONS else _Slot.SUM


def _counts(node: Node) -> bool:
    """Say whether the reference counts a node on the paths through its tree."""
    match node:
        case Binary(operator=operator):
            return operator not in ("&&", "||")
        case Call(target=target):
            return target is not None
        case _:
            return isinstance(node, Ternary | Select | Index)


def _inside(place: _Place, entered: _Place) -> Iterator[_Place]:
    """Yield the places inside a node; a left operand is read by the rule that read the whole."""
    node, own = place.node, _own_slot(place.node)
    match node:
        case Ternary(condition=condition, then=then, otherwise=otherwise):
            yield entered._replace(node=condition, slot=_Slot.LOGIC)
            yield entered._replace(node=then, slot=_Slot.LOGIC)
            yield entered._replace(node=otherwise, slot=_Slot.EXPRESSION)
        case Binary(left=left, right=right) if own == _Slot.LOGIC:
            yield entered._replace(node=left, slot=own)
            yield entered._replace(node=right, slot=own)
        case Binary(left=left, right=right):
            opened = place._replace(expressions=entered.expressions, path=entered.path)
            if own == _Slot.SUM:
                opened = opened._replace(relations=entered.relations)
            yield opened._replace(node=left, slot=own)
            yield entered._replace(node=right, slot=own)
        case _:
            for child in children(node):
                yield entered._replace(node=child, slot=_child_slot(node, child))


def _child_slot(node: Node, child: Node) -> _Slot:
    if isinstance(child, Entry | Field):
        return _Slot.MEMBER
    match node:
        case Select() | Unary():
            return _Slot.MEMBER
        case Index(target=target) | Call(target=target) | Message(target=target):
            return _Slot.MEMBER if child is target else _Slot.EXPRESSION
        case _:
            return _Slot.EXPRESSION
