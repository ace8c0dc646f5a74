"""Literals: which escapes and numbers the reference takes, and what is wrong with the others."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, NamedTuple

from jobspec.cel.findings import Findings, shorten
from jobspec.source import Span

if TYPE_CHECKING:
    from jobspec.cel.tree import Literal

_ESCAPE = re.compile(
    r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}))"""
)
_BAD_ESCAPE = re.compile(
    r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-7]{1,3}|.)?"
)
_HELP = {
    "x": "`\\x` takes two hexadecimal digits, such as `\\x41`",
    "X": "`\\X` takes two hexadecimal digits, such as `\\X41`",
    "u": "`\\u` takes four hexadecimal digits, such as `\\u00e9`",
    "U": "`\\U` takes eight hexadecimal digits, such as `\\U0001F600`",
}
_OCTAL = "an octal escape has three digits, up to `\\377`"
_DOUBLED = "write `\\\\` for a backslash"
_CHARACTERS = "characters go up to `\\U0010ffff`, without the surrogates `\\ud800` to `\\udfff`"
_LIMITS = {"int": 2**63, "uint": 2**64}
_KINDS = {"int": "an int", "uint": "a uint"}
_LONG = 25  # more digits than any whole number has that CEL can hold


class Fault(NamedTuple):
    """What is wrong with a string, and where."""

    code: str
    message: str
    span: Span
    help: str


def quoted_fault(text: str, start: int) -> Fault:
    """Say why no string begins with the quote at `start`: an escape, or no end."""
    quote = text[start]
    # An unclosed `'''` is read as an empty string and one more quote, which is the one at `start`.
    triple = start > 1 and text.startswith(quote * 2, start - 2)
    at = start + 1
    while at < len(text) and (triple or text[at] not in "\r\n"):
        if text[at] != "\\":
            at += 1
        elif (escape := _ESCAPE.match(text, at)) is not None:
            at = escape.end()
        else:
            return _escape_fault(text, at)
    opening = quote * 3 if triple else quote
    span = Span(start - 2 if triple else start, at)
    return Fault("JS141", "this string has no closing quote", span, f"end it with `{opening}`")


def _escape_fault(text: str, at: int) -> Fault:
    found = _BAD_ESCAPE.match(text, at)
    shown = found.group() if found else "\\"
    letter = shown[1:2]
    help_ = _OCTAL if letter.isdigit() and letter in "01234567" else _HELP.get(letter, _DOUBLED)
    return Fault("JS142", f"`{shown}` is not an escape", Span(at, at + len(shown)), help_)


def check_literal(literal: Literal, findings: Findings, *, negative: bool = False) -> None:
    """Note what the reference refuses of a literal that its grammar reads."""
    if literal.kind in ("string", "bytes"):
        _check_text(literal, findings)
    elif literal.kind in _LIMITS:
        _check_whole(literal, findings, negative=negative)
    elif literal.kind == "double" and float(literal.text) == float("inf"):
        findings.add("JS142", f"{literal.text} is too large for a double", literal.span)


def _check_whole(literal: Literal, findings: Findings, *, negative: bool) -> None:
    limit = _LIMITS[literal.kind] + (negative and literal.kind == "int")
    if _value(literal.text.rstrip("uU"), limit) >= limit:
        message = f"{literal.text} is too large for {_KINDS[literal.kind]}"
        findings.add(
            "JS142", shorten(message), literal.span, "write it as a double, such as `1e20`"
        )


def _value(digits: str, limit: int) -> int:
    """Return the number, or the limit where it is longer than Python cares to convert."""
    if digits.startswith("0x"):
        return int(digits, 16)
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) < _LONG else limit


def _check_text(literal: Literal, findings: Findings) -> None:
    start = literal.span.start
    if literal.text.lower().startswith(("r", "br")):
        return
    for escape in _ESCAPE.finditer(literal.text):
        shown = escape.group()
        span = Span(start + escape.start(), start + escape.end())
        if shown[1] not in "uU":
            continue
        if literal.kind == "bytes":
            message = f"`{shown}` can't stand in bytes"
            findings.add("JS142", message, span, "write each byte as `\\xHH`")
        elif _no_character(int(shown.lower().removeprefix("\\u"), 16)):
            findings.add("JS142", f"`{shown}` is no character", span, _CHARACTERS)


def _no_character(number: int) -> bool:
    return number > sys.maxunicode or 0xD800 <= number <= 0xDFFF
