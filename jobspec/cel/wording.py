"""What a text that is not CEL is told: what was expected, where, and what to write instead."""

from __future__ import annotations

from typing import NamedTuple

from jobspec.cel.findings import Findings, shorten
from jobspec.cel.literals import quoted_fault
from jobspec.source import Span

_CLOSERS = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE", "QUESTION": "COLON"}
_SIGNS = {"LPAR": "(", "LSQB": "[", "LBRACE": "{", "RPAR": ")", "RSQB": "]", "RBRACE": "}"}
_WORDS = {"TRUE", "FALSE", "NULL", "IN"}
_VALUES = {"IDENT", "INT", "UINT", "FLOAT", "STRING", "BYTES", "TRUE", "FALSE", "NULL"}
_CHARACTER_HELP = {
    "=": "compare with `==`",
    "&": "`and` is written `&&`",
    "|": "`or` is written `||`",
    ";": "an expression ends without `;`",
    "#": "a comment begins with `//`",
    "$": "fields are read without `$`, as in `event.data.id`",
    "`": "a text stands between `'` or between `\"`",
    "\\": "a backslash stands only inside a text",
} | dict.fromkeys("\u2018\u2019\u201c\u201d\u00b4", "a text stands between `'` or between `\"`")
_TOKEN_HELP = {
    "and": "`and` is written `&&`",
    "or": "`or` is written `||`",
    "not": "`not` is written `!`",
    "is": "compare with `==`",
}


class Piece(NamedTuple):
    """A token: its kind in the grammar, its text, its place."""

    kind: str
    text: str
    span: Span


def report_character(findings: Findings, at: int) -> None:
    """Note that at this offset no token begins."""
    text = findings.source.text
    char = text[at]
    if char in "'\"":
        findings.add(*quoted_fault(text, at))
        return
    help_ = _CHARACTER_HELP.get(char)
    if help_ is None and char.isalpha():
        help_ = "a name holds only the letters a to z, digits and `_`; other text stands in quotes"
    if not char.isprintable():
        help_ = "delete it: it does not show, and is no plain space"
    message = f"{_shown(char)} has no meaning here"
    findings.add("JS140", message, Span(at, at + 1), help_)


def _shown(char: str) -> str:
    if not char.isprintable():
        return f"the character U+{ord(char):04X}"
    return "a backtick" if char == "`" else f"`{char}`"


def report_token(
    findings: Findings, before: list[Piece], found: Piece, expected: frozenset[str]
) -> None:
    """Note that a token does not fit: `before` are those that did, `expected` what would have."""
    opened = _open(before)
    last = before[-1] if before else None
    message, help_, opener = _explain(last, found, expected, opened)
    findings.add("JS140", message, found.span, help_, opener.span if opener else None)


class _Explanation(NamedTuple):
    message: str
    help: str | None = None
    opener: Piece | None = None


def _explain(
    last: Piece | None, found: Piece, expected: frozenset[str], opened: Piece | None
) -> _Explanation:
    if last is None and found.kind == "$END":
        return _Explanation("the expression is empty", "write a value, such as `event.data.id`")
    if last is not None and last.kind == "DOT" and "IDENT" in expected:
        return _after_dot(found)
    if "IDENT" in expected:
        return _Explanation(_needs(_wanted(expected), last, found), _sign_help(last, found))
    return _after_value(found, opened)


def _wanted(expected: frozenset[str]) -> str:
    return "a value" if "LPAR" in expected else "a field name"


def _needs(what: str, last: Piece | None, found: Piece) -> str:
    place = "at the start" if last is None else f"after `{shorten(last.text, 20)}`"
    return f"expected {what} {place}, found {_name(found)}"


def _name(found: Piece) -> str:
    if found.kind == "ESC_IDENT":
        return "a name in backticks"
    return "the end" if found.kind == "$END" else f"`{shorten(found.text, 20)}`"


def _sign_help(last: Piece | None, found: Piece) -> str | None:
    if found.kind == "ESC_IDENT":
        return _CHARACTER_HELP["`"]
    if found.kind == "PLUS" and last is not None and last.kind == "PLUS":
        return "join two values with one `+`"
    if found.kind in ("NOT", "MINUS"):
        return "put the negated part in parentheses"
    return None


def _after_dot(found: Piece) -> _Explanation:
    message = f"expected a field name after `.`, found {_name(found)}"
    if found.kind in _WORDS:
        return _Explanation(message, f'write `["{found.text}"]` instead of `.{found.text}`')
    if found.kind in ("STRING", "INT"):
        return _Explanation(message, "a field that is no plain name is read with `[…]`")
    return _Explanation(message)


def _after_value(found: Piece, opened: Piece | None) -> _Explanation:
    if opened is not None and opened.kind == "QUESTION":
        return _after_question(found, opened)
    if found.kind == "$END" and opened is not None:
        message = f"`{opened.text}` is never closed"
        return _Explanation(message, f"close it with `{_closing(opened)}`", opened)
    if found.kind in _CLOSERS.values() and found.kind != "COLON":
        return _closer(found, opened)
    wanted = "an operator or the end" if opened is None else f"an operator or `{_closing(opened)}`"
    if opened is not None and opened.kind == "LBRACE":
        message = f"expected `:` and a value, `,` or `}}`, found {_name(found)}"
        return _Explanation(message, None, opened)
    return _Explanation(f"expected {wanted}, found {_name(found)}", _value_help(found), opened)


def _closing(opened: Piece) -> str:
    return _SIGNS[_CLOSERS[opened.kind]]


def _after_question(found: Piece, opened: Piece) -> _Explanation:
    message = f"`?` needs a `:` and what holds otherwise, found {_name(found)}"
    if found.kind == "QUESTION":
        return _Explanation(message, "put the inner ternary in parentheses", opened)
    help_ = "a missing field needs no `?.`: write `.` alone, or test it with `has(…)`"
    return _Explanation(message, help_ if found.kind == "$END" else None, opened)


def _closer(found: Piece, opened: Piece | None) -> _Explanation:
    if opened is None:
        return _Explanation(f"`{found.text}` closes nothing")
    message = f"expected `{_closing(opened)}` for `{opened.text}`, found `{found.text}`"
    if opened.kind == "LBRACE":
        message = f"expected `:` and a value, found `{found.text}`"
        help_ = "braces make a map, `{'key': value}`; an expression stands without them"
        return _Explanation(message, help_, opened)
    return _Explanation(message, None, opened)


def _value_help(found: Piece) -> str | None:
    if found.text in _TOKEN_HELP:
        return _TOKEN_HELP[found.text]
    if found.kind == "FLOAT" and found.text.startswith("."):
        return f'a field that begins with a digit is read as `["{found.text[1:]}"]`'
    if found.kind in _VALUES:
        return "join two values with `+`, or compare them with `==`"
    return None


def _open(before: list[Piece]) -> Piece | None:
    """Return the innermost bracket, or `?` of a ternary, that is still open."""
    waiting: list[Piece] = []
    for piece in before:
        if piece.kind in _CLOSERS:
            waiting.append(piece)
        elif waiting and piece.kind == _CLOSERS[waiting[-1].kind]:
            waiting.pop()
    return waiting[-1] if waiting else None
