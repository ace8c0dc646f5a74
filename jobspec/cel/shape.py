"""What the reference refuses of an expression that its grammar reads, before it looks at types."""

from __future__ import annotations

from jobspec.cel.depth import LIMIT, too_deep
from jobspec.cel.findings import Findings, shorten
from jobspec.cel.literals import check_literal
from jobspec.cel.macros import Macro, macro_of
from jobspec.cel.tree import (
    Call,
    Literal,
    Message,
    Name,
    Node,
    Select,
    Unary,
    Unsupported,
    bare,
    dotted,
    walk,
)
from jobspec.source import Span

RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "namespace", "package", "return", "var", "void", "while"),
    )
)
_ACCUMULATOR = "__result__"  # the reference's own variable inside a macro
_OPTIONAL = "the reference has no optional values turned on: "
_UNSUPPORTED = {
    ".?": ("`.?`", _OPTIONAL + "write `.`"),
    "[?": ("`[?`", _OPTIONAL + "write `[`"),
    "?": ("`?`", _OPTIONAL + "leave it out"),
    "`": ("a name in backticks", 'a field with such a name is read as `["…"]`'),
}


def check_shape(root: Node, findings: Findings) -> None:
    """Note reserved words, bad literals, misused macros, syntax that is off, and too much depth."""
    negated: set[int] = set()
    for node in walk(root):
        match node:
            case Unary(operator="-", count=1, operand=operand):
                negated.add(id(operand))
            case Literal():
                check_literal(node, findings, negative=id(node) in negated)
            case Name(name=name, span=span):
                _check_reserved(name, span, findings)
            case Call():
                _check_call(node, findings)
            case Message():
                _check_message(node, findings)
            case Unsupported(syntax=syntax, span=span):
                what, help_ = _UNSUPPORTED[syntax]
                findings.add("JS140", f"{what} is not supported here", span, help_)
            case _:
                pass
    _check_depth(root, findings)


def _check_depth(root: Node, findings: Findings) -> None:
    deep = too_deep(root)
    if deep is not None:
        message = f"the expression nests more than {LIMIT} deep here"
        findings.add("JS148", message, deep.span, "split it, or join fewer parts")


def _check_reserved(name: str, span: Span, findings: Findings) -> None:
    if name in RESERVED:
        message = f"`{name}` is a reserved word and can't be a name"
        findings.add("JS143", message, span, "it may only be a field, after a `.`")


def _check_message(message: Message, findings: Findings) -> None:
    if dotted(message.target) is None:
        start = message.target.span.end
        findings.add("JS140", "expected an operator or the end, found `{`", Span(start, start + 1))


def _check_call(call: Call, findings: Findings) -> None:
    if call.target is None:
        _check_reserved(call.function, call.function_span, findings)
    macro = macro_of(call)
    if macro is Macro.HAS:
        _check_has(call.arguments[0], findings)
    elif macro is not None:
        _check_variable(call, call.arguments[0], findings)


def _check_has(argument: Node, findings: Findings) -> None:
    if not isinstance(bare(argument), Select):
        message = "`has` takes one field, written with a `.`"
        findings.add("JS147", message, argument.span, "write it as in `has(event.data.id)`")


def _check_variable(call: Call, argument: Node, findings: Findings) -> None:
    variable = bare(argument)
    if not isinstance(variable, Name):
        message = f"the first argument of `{call.function}` is not a plain name"
        help_ = f"name each element, as in `event.data.tags.{shorten(call.function)}(tag, …)`"
        findings.add("JS147", message, argument.span, help_)
    elif variable.name == _ACCUMULATOR:
        message = f"`{_ACCUMULATOR}` can't name an element"
        findings.add("JS147", message, argument.span, "choose another name")
