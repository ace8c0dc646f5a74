"""What a CEL expression is, once read: frozen nodes, each with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Literal as OneOf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobspec.source import Span

LiteralKind = OneOf["int", "uint", "double", "string", "bytes", "boolean", "null"]


@dataclass(frozen=True, slots=True)
class Node:
    """Any part of an expression. `span` is the text it was written as."""

    span: Span


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A value written out; `text` is how, quotes and prefixes included."""

    kind: LiteralKind
    text: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name that stands alone, such as `event`; `name` is without a leading dot."""

    name: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    """`target.field`."""

    target: Node
    field: str
    field_span: Span


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`target[index]`."""

    target: Node
    index: Node


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`function(arguments)`, or `target.function(arguments)`. Macros are calls too."""

    function: str
    function_span: Span
    target: Node | None
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`!operand` or `-operand`; `count` operators of one kind in a row are one node."""

    operator: str
    operator_span: Span
    count: int
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`left operator right`."""

    left: Node
    operator: str
    operator_span: Span
    right: Node


@dataclass(frozen=True, slots=True)
class Ternary(Node):
    """`condition ? then : otherwise`."""

    condition: Node
    operator_span: Span
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Parentheses(Node):
    """`(inner)`. Kept, because a person who is told about them must find them."""

    inner: Node


@dataclass(frozen=True, slots=True)
class List(Node):
    """`[items]`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entry(Node):
    """`key: value` in a map."""

    key: Node
    value: Node


@dataclass(frozen=True, slots=True)
class Map(Node):
    """`{entries}`."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Field(Node):
    """`name: value` in a message."""

    name: str
    value: Node


@dataclass(frozen=True, slots=True)
class Message(Node):
    """`type{fields}`. The grammar reads any target; only a dotted name is a type."""

    target: Node
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Unsupported(Node):
    """Syntax that the reference reads and then refuses; `inner` is what it was put on.

    `span` covers the refused sign only, `inner.span` all of it.
    """

    syntax: str
    inner: Node


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly inside a node, in the order they are written."""
    match node:
        case Select(target=inner) | Unary(operand=inner):
            return (inner,)
        case Parentheses(inner=inner) | Unsupported(inner=inner) | Field(value=inner):
            return (inner,)
        case Index(target=target, index=index):
            return (target, index)
        case Call(target=target, arguments=arguments):
            return arguments if target is None else (target, *arguments)
        case Binary(left=left, right=right):
            return (left, right)
        case Ternary(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Entry(key=key, value=value):
            return (key, value)
        case List(items=items):
            return items
        case Map(entries=entries):
            return entries
        case Message(target=target, fields=fields):
            return (target, *fields)
        case _:
            return ()


def walk(root: Node) -> Iterator[Node]:
    """Yield a node and all nodes inside it, each before what is inside it, in reading order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))


def dotted(node: Node) -> str | None:
    """Return `a.b.c` where a node is such a chain of plain names, otherwise None."""
    steps: list[str] = []
    while isinstance(node, Select):
        steps.append(node.field)
        node = node.target
    if not isinstance(node, Name):
        return None
    return ".".join((node.name, *reversed(steps)))


def bare(node: Node) -> Node:
    """Return what stands inside any parentheses around a node."""
    while isinstance(node, Parentheses):
        node = node.inner
    return node
