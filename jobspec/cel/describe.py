"""The name of a construct, as one would say it: for messages about what can't stand somewhere."""

from __future__ import annotations

from jobspec.cel.tree import (
    Binary,
    Call,
    Index,
    List,
    Literal,
    Map,
    Message,
    Name,
    Node,
    Parentheses,
    Select,
    Ternary,
    Unary,
    walk,
)

_NODES: dict[type[Node], str] = {
    Name: "a name",
    Select: "a field",
    Index: "indexing",
    Ternary: "a ternary",
    Parentheses: "parentheses",
    List: "a list",
    Map: "a map",
    Message: "a message",
}
_OPERATORS = {
    "+": "an addition",
    "-": "a subtraction",
    "*": "a multiplication",
    "/": "a division",
    "%": "a remainder",
    "&&": "a logical and",
    "||": "a logical or",
    "in": "a membership test",
}
_LITERALS = {
    "int": "a number",
    "uint": "a number",
    "double": "a number",
    "bytes": "a bytes literal",
    "boolean": "a boolean",
    "null": "null",
}
_MACROS = frozenset({"has", "all", "exists", "exists_one", "existsOne", "map", "filter"})


def describe(node: Node) -> str:
    """Return what a person calls the construct, with its article: `a function call`."""
    match node:
        case Literal(kind="string", text=text):
            return _string(text)
        case Literal(kind=kind):
            return _LITERALS[kind]
        case Call(function=function) if function in _MACROS:
            return f"the macro `{function}`"
        case Call(target=None):
            return "a function call"
        case Call():
            return "a method call"
        case Unary(operator="!"):
            return "a negation"
        case Unary():
            return "a minus sign"
        case Binary(operator=operator):
            return _OPERATORS.get(operator, "a comparison")
        case _:
            return _NODES[type(node)]


def _string(text: str) -> str:
    if text[0] in "rR":
        return "a raw string"
    return "a triple-quoted string" if text.startswith(("'''", '"""')) else "a string"


def construct_at(root: Node, offset: int) -> Node:
    """Return the outermost construct at an offset that is more than the addition of others.

    `root` is a tree that `parse` returned, `offset` a place in its text: in `event.data.a + f(x)`,
    15 is at the function call. Where only additions hold the offset, it is the innermost of them.
    """
    best = root
    for node in walk(root):
        if node.span.start <= offset < node.span.end:
            best = node
            if not (isinstance(node, Binary) and node.operator == "+"):
                break
    return best
