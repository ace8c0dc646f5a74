"""Text to tree. The only module of `jobspec.cel` that knows the parser.

The lexer is the basic one, on purpose: the reference cuts a text into tokens without regard to
what could stand there, and a contextual lexer would read the `in` of `event.data.in`, or the `.1`
of `event.data.1`, as something that fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken

from jobspec.cel.findings import Findings
from jobspec.cel.tree import (
    Binary,
    Call,
    Entry,
    Field,
    Index,
    List,
    Literal,
    LiteralKind,
    Map,
    Message,
    Name,
    Node,
    Parentheses,
    Select,
    Ternary,
    Unary,
    Unsupported,
)
from jobspec.cel.wording import Piece, Stop, report_character, report_token
from jobspec.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

_LITERALS: dict[str, LiteralKind] = {
    "INT": "int",
    "UINT": "uint",
    "FLOAT": "double",
    "STRING": "string",
    "BYTES": "bytes",
    "TRUE": "boolean",
    "FALSE": "boolean",
    "NULL": "null",
}
Parts = list[Any]  # tokens and nodes, as the right-hand side of the rule of the same name has them


@dataclass(frozen=True, slots=True)
class _Arguments(Node):
    values: tuple[Node, ...]


def read(text: str) -> Node:
    """Return the tree of a text.

    Raises CelError where the grammar does not read it; one diagnostic says where it stopped.
    """
    findings = Findings(text)
    try:
        return _parser().parse(text)
    except UnexpectedCharacters as error:
        report_character(findings, cast("int", error.pos_in_stream))
    except UnexpectedToken as error:
        report_token(findings, _stop(text, error))
    findings.raise_if_any()
    raise AssertionError("a refused text has a finding")


class _Parser(Protocol):
    """What is used of lark, whose own types leave the builder's out."""

    def parse(self, text: str) -> Node: ...

    def lex(self, text: str) -> Iterator[Token]: ...


@cache
def _parser() -> _Parser:
    parser: Any = Lark.open_from_package(  # pyright: ignore[reportUnknownMemberType] - **options
        "jobspec_grammars",
        "cel.lark",
        parser="lalr",
        lexer="basic",
        maybe_placeholders=False,
        transformer=_Builder(),
    )
    return cast("_Parser", parser)


def _stop(text: str, error: UnexpectedToken) -> Stop:
    token: Token = error.token
    found = _piece(token)
    end = len(text) if found.kind == "$END" else found.span.start
    before = tuple(_piece(token) for token in _parser().lex(text[:end]))
    if found.kind == "$END":
        last = before[-1].span.end if before else 0
        found = Piece(found.kind, "", Span(last, last))
    return Stop(before, found, frozenset(error.expected))


def _piece(token: Token) -> Piece:
    kind: str = token.type  # pyright: ignore[reportUnknownMemberType] - untyped
    return Piece(kind, str(token), _span(token))


def _span(part: Token | Node) -> Span:
    if isinstance(part, Node):
        return part.span
    start = part.start_pos or 0
    return Span(start, start + len(part))


def _around(parts: Parts) -> Span:
    return Span(_span(parts[0]).start, _span(parts[-1]).end)


def _nodes(parts: Parts) -> tuple[Any, ...]:
    return tuple(part for part in parts if isinstance(part, Node))


class _Builder(Transformer[Token, Node]):
    """One method for each rule of the grammar; it is given what the rule's right-hand side read."""

    def ternary(self, parts: Parts) -> Node:
        condition, question, then, _, otherwise = parts
        return Ternary(_around(parts), condition, _span(question), then, otherwise)

    def binary(self, parts: Parts) -> Node:
        left, operator, right = parts
        return Binary(_around(parts), left, str(operator), _span(operator), right)

    def unary(self, parts: Parts) -> Node:
        *operators, operand = parts
        first = operators[0]
        return Unary(_around(parts), str(first), _span(first), len(operators), operand)

    def select(self, parts: Parts) -> Node:
        target, *signs, field = parts
        plain = str(field).strip("`")
        node: Node = Select(_around(parts), target, plain, _span(field))
        if field.type == "ESC_IDENT":
            node = Unsupported(_span(field), "`", node)
        if len(signs) > 1:
            node = Unsupported(_around(signs), ".?", node)
        return node

    def method(self, parts: Parts) -> Node:
        target, _, name, arguments = parts
        return Call(_around(parts), str(name), _span(name), target, arguments.values)

    def function(self, parts: Parts) -> Node:
        *_, name, arguments = parts
        return Call(_around(parts), str(name), _span(name), None, arguments.values)

    def arguments(self, parts: Parts) -> Node:
        return _Arguments(_around(parts), _nodes(parts))

    def index(self, parts: Parts) -> Node:
        target, *signs, index, _ = parts
        node = Index(_around(parts), target, index)
        return Unsupported(_around(signs), "[?", node) if len(signs) > 1 else node

    def message(self, parts: Parts) -> Node:
        target, *fields = _nodes(parts)
        return Message(_around(parts), target, tuple(fields))

    def name(self, parts: Parts) -> Node:
        return Name(_around(parts), str(parts[-1]))

    def parentheses(self, parts: Parts) -> Node:
        return Parentheses(_around(parts), parts[1])

    def list(self, parts: Parts) -> Node:
        return List(_around(parts), _nodes(parts))

    def map(self, parts: Parts) -> Node:
        return Map(_around(parts), _nodes(parts))

    def item(self, parts: Parts) -> Node:
        return _optional(parts, parts[-1])

    def entry(self, parts: Parts) -> Node:
        key, _, value = parts[-3:]
        return Entry(_around(parts), _optional(parts[:-2], key), value)

    def field(self, parts: Parts) -> Node:
        name, _, value = parts[-3:]
        value = _optional(parts[:-2], value)
        if name.type == "ESC_IDENT":
            value = Unsupported(_span(name), "`", value)
        return Field(_around(parts), str(name).strip("`"), value)

    def literal(self, parts: Parts) -> Node:
        (token,) = parts
        return Literal(_span(token), _LITERALS[token.type], str(token))


def _optional(parts: Parts, node: Node) -> Node:
    first = parts[0]
    if isinstance(first, Token) and first.type == "QUESTION":
        return Unsupported(_span(first), "?", node)
    return node
