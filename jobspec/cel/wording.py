"""What a text that is not CEL is told: what was expected, where, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from jobspec.cel.findings import Findings, shorten
from jobspec.cel.literals import quoted_fault
from jobspec.source import Span

_CLOSED_BY = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE", "QUESTION": "COLON"}
_CLOSERS = {"RPAR": ")", "RSQB": "]", "RBRACE": "}"}
_WORDS = frozenset({"TRUE", "FALSE", "NULL", "IN"})
_VALUES = frozenset({"IDENT", "INT", "UINT", "FLOAT", "STRING", "BYTES", "TRUE", "FALSE", "NULL"})
_CHARACTER_HELP = {
    "=": "compare with `==`",
    "&": "`and` is written `&&`",
    "|": "`or` is written `||`",
    ";": "an expression ends without `;`",
    "#": "a comment begins with `//`",
    "$": "fields are read without `$`, as in `event.data.id`",
    "`": "a string stands between `'` or between `\"`",
    "\\": "a backslash stands only inside a string",
} | dict.fromkeys("\u2018\u2019\u201c\u201d\u00b4", "a string stands between `'` or between `\"`")
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


@dataclass(frozen=True)
class Stop:
    """Where reading stopped: at `found`, after `before`, where tokens of `expected` kinds fit."""

    before: tuple[Piece, ...]
    found: Piece
    expected: frozenset[str]

    @property
    def last(self) -> Piece | None:
        """The token before."""
        return self.before[-1] if self.before else None

    @property
    def is_end(self) -> bool:
        """Whether the text ended where more was needed."""
        return self.found.kind == "$END"

    @cached_property
    def opener(self) -> Piece | None:
        """The innermost bracket, or `?` of a ternary, that is still open."""
        waiting: list[Piece] = []
        for piece in self.before:
            if piece.kind in _CLOSED_BY:
                waiting.append(piece)
            elif waiting and piece.kind == _CLOSED_BY[waiting[-1].kind]:
                waiting.pop()
        return waiting[-1] if waiting else None


class _Said(NamedTuple):
    message: str
    help: str | None = None
    opener: Piece | None = None


def report_token(findings: Findings, stop: Stop) -> None:
    """Note that a token does not fit where it stands."""
    message, help_, opener = _explain(stop)
    findings.add("JS140", message, stop.found.span, help_, opener.span if opener else None)


def _explain(stop: Stop) -> _Said:
    if stop.last is None and stop.is_end:
        return _Said("the expression is empty", "write a value, such as `event.data.id`")
    if "IDENT" not in stop.expected:
        return _after_value(stop)
    if stop.last is not None and stop.last.kind == "DOT":
        return _after_dot(stop)
    wanted = "a value" if "LPAR" in stop.expected else "a field name"
    place = "at the start" if stop.last is None else f"after `{shorten(stop.last.text, 20)}`"
    return _Said(f"expected {wanted} {place}, found {_name(stop.found)}", _sign_help(stop))


def _name(found: Piece) -> str:
    if found.kind == "ESC_IDENT":
        return "a name in backticks"
    return "the end" if found.kind == "$END" else f"`{shorten(found.text, 20)}`"


def _sign_help(stop: Stop) -> str | None:
    kind = stop.found.kind
    if kind == "ESC_IDENT":
        return _CHARACTER_HELP["`"]
    if kind == "PLUS" and stop.last is not None and stop.last.kind == "PLUS":
        return "join two values with one `+`"
    return "put the negated part in parentheses" if kind in ("NOT", "MINUS") else None


def _after_dot(stop: Stop) -> _Said:
    found = stop.found
    message = f"expected a field name after `.`, found {_name(found)}"
    if found.kind in _WORDS:
        return _Said(message, f'write `["{found.text}"]` instead of `.{found.text}`')
    if found.kind in ("STRING", "INT"):
        return _Said(message, 'a field that is no plain name is read as `["…"]`')
    return _Said(message)


def _after_value(stop: Stop) -> _Said:
    found, opener = stop.found, stop.opener
    if opener is None and found.kind in _CLOSERS:
        return _Said(f"`{found.text}` closes nothing")
    if opener is None:
        return _Said(f"expected an operator or the end, found {_name(found)}", _value_help(stop))
    if opener.kind == "QUESTION":
        return _after_question(stop, opener)
    closer = _CLOSERS[_CLOSED_BY[opener.kind]]
    if stop.is_end:
        return _Said(f"`{opener.text}` is never closed", f"close it with `{closer}`", opener)
    if opener.kind == "LBRACE":
        return _in_braces(found, opener)
    if found.kind in _CLOSERS:
        message = f"expected `{closer}` for `{opener.text}`, found `{found.text}`"
        return _Said(message, None, opener)
    message = f"expected an operator or `{closer}`, found {_name(found)}"
    return _Said(message, _value_help(stop), opener)


def _after_question(stop: Stop, opener: Piece) -> _Said:
    message = f"`?` needs a `:` and what holds otherwise, found {_name(stop.found)}"
    following = stop.before[stop.before.index(opener) + 1]
    if stop.found.kind == "QUESTION":
        return _Said(message, "put the inner ternary in parentheses", opener)
    if following.kind == "DOT":
        help_ = "there is no `?.`: write `.`, and test with `has(…)` for what may be missing"
        return _Said(message, help_, opener)
    return _Said(message, None, opener)


def _in_braces(found: Piece, opener: Piece) -> _Said:
    message = f"expected `:` and a value, `,` or `}}`, found {_name(found)}"
    if found.kind not in _CLOSERS:
        return _Said(message, None, opener)
    help_ = "braces make a map, `{'key': value}`; an expression stands without them"
    return _Said(f"expected `:` and a value, found {_name(found)}", help_, opener)


def _value_help(stop: Stop) -> str | None:
    found, last = stop.found, stop.last
    for word in (found.text, last.text if last else ""):
        if word in _TOKEN_HELP:
            return _TOKEN_HELP[word]
    if found.kind == "FLOAT" and found.text.startswith("."):
        return f'a field that begins with a digit is read as `["{found.text[1:]}"]`'
    if found.kind == "COMMA":
        return "two conditions are joined with `&&`"
    return "join two values with `+`, or compare them with `==`" if found.kind in _VALUES else None
