"""Tokens of a text that is not a key template, so that its faults can be named.

Wider than the grammar on purpose: it knows what people write instead (all of CEL, placeholders of
other template languages, curly quotes), and splits any text without failing, in linear time.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from jobspec.source import Span

_PREFIX = r"(?<![.\w])[A-Za-z]{1,2}"
_STRING = r"""'(?:[^'\\\n\r]|\\[^\n\r])*'|"(?:[^"\\\n\r]|\\[^\n\r])*\""""
_TRIPLE = r"""'''(?s:.*?)'''|\"\"\"(?s:.*?)\"\"\""""

_CURLY = r"\u2018\u2019\u201a\u201c\u201d\u201e\xab\xbb\xb4"

_KINDS = {
    "space": r"[ \t\n\f\r]+",
    "comment": r"(?://|#)[^\n]*",
    "placeholder": r"\$\{[^{}\n]*\}?|\{\{[^{}\n]*\}\}|\$(?=[.\w])",
    "triple": rf"(?:{_PREFIX})?(?:{_TRIPLE})",
    "prefixed": rf"{_PREFIX}(?:{_STRING})",
    "string": _STRING,
    "unclosed": rf"""(?:{_PREFIX})?['"][^\n\r]*""",
    "curly": rf"[{_CURLY}][^{_CURLY}'\"\n]*[{_CURLY}]?",
    "number": r"0[xX][0-9A-Fa-f]+[uU]?(?!\w)|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[uU]?(?!\w)",
    "word": r"\w+",
    "backquoted": r"`[^`\n]*`?",
    "optional": r"\.\?|(?<=\w)\?\.(?=\w)",
    "operator": r"&&|\|\||[=!<>]=|[-*/%<>!?:=&|]",
    "plus": r"\+",
    "dot": r"\.",
    "open": r"[(\[{]",
    "close": r"[)\]}]",
    "stray": rf"""[^\w \t\n\f\r'"{_CURLY}`$(){{}}\[\]+.&|=!<>*/%?:\-]+|.""",
}
_TOKEN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))


class Token(NamedTuple):
    """A piece of a text. `kind` is one of the keys of the table above, but never `space`."""

    kind: str
    text: str
    span: Span


def scan(text: str) -> list[Token]:
    """Return the tokens of a text, whatever it is."""
    return [
        Token(found.lastgroup or "", found[0], Span(*found.span()))
        for found in _TOKEN.finditer(text)
        if found.lastgroup != "space"
    ]


def matching_brackets(tokens: list[Token]) -> dict[int, int]:
    """Return the index of the bracket that closes each opened one, if any does."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(index)
        elif token.kind == "close" and opened and _closes(tokens[opened[-1]].text, token.text):
            pairs[opened.pop()] = index
    return pairs


def _closes(opening: str, closing: str) -> bool:
    return opening + closing in {"()", "[]", "{}"}
