"""Text to terms, by the grammar `key.lark`. The only module of the keys that knows the parser."""

from __future__ import annotations

import re
from functools import cache

from lark import Lark, Token, Tree, UnexpectedInput

from jobspec.keys.terms import Field, Literal, Term
from jobspec.source import Span

# Legal escapes only: the grammar has seen to that.
_ESCAPE = re.compile(r"\\(?:[xX](..)|u(.{4})|U(.{8})|([0-3][0-7][0-7])|(.))")
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class NotATemplate(Exception):  # noqa: N818 - what the text is not; `refusals` tells why
    """The grammar does not accept the text."""


def parse(text: str) -> tuple[Term, ...]:
    """Return the terms of a key template, in order.

    Raises:
        NotATemplate: for every text that is not one.

    """
    try:
        tree: Tree[Token] = _parser().parse(text)  # pyright: ignore[reportUnknownMemberType] - lark types its options as Unknown
    except UnexpectedInput:
        raise NotATemplate from None
    escapes = processes_escapes(text)
    return tuple(_term(node, escapes=escapes) for node in tree.children if isinstance(node, Tree))


def processes_escapes(text: str) -> bool:
    r"""Tell whether `'\n'` is a line feed in this template, and not the two characters `\n`.

    The reference lifts literals out of an expression, raw, before it evaluates it, and leaves an
    expression alone whose text mentions `vars.`, the name it lifts them to (keys.jsonl).
    """
    return "vars." in text


@cache
def _parser() -> Lark:
    return Lark.open_from_package(  # pyright: ignore[reportUnknownMemberType] - as above
        "jobspec_grammars", "key.lark", parser="lalr", start="template", propagate_positions=True
    )


def _term(node: Tree[Token], *, escapes: bool) -> Term:
    span = Span(node.meta.start_pos, node.meta.end_pos)
    tokens = [child for child in node.children if isinstance(child, Token)]
    if node.data == "field":
        return Field(tuple(map(str, tokens)), span, tuple(map(_span, tokens)))
    quote, raw = tokens[0][0], tokens[0][1:-1]
    return Literal(_unescape(raw) if escapes else raw, raw, quote, span)


def _span(token: Token) -> Span:
    start = token.start_pos or 0
    return Span(start, start + len(token))


def _unescape(raw: str) -> str:
    return _ESCAPE.sub(_character, raw)


def _character(escape: re.Match[str]) -> str:
    *hexadecimal, octal, control = escape.groups()
    if control is not None:
        return _CONTROLS.get(control, control)
    if octal is not None:
        return chr(int(octal, 8))
    return chr(int(next(filter(None, hexadecimal)), 16))
