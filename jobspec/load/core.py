"""What a plain scalar means: the core schema of YAML 1.2 (its chapter 10.3.2).

So `on`, `no` and `2024-01-01` are texts, `1e3` is a number, and `1:30` is not one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobspec.load.limits import MAX_DIGITS

if TYPE_CHECKING:
    from jobspec.load.nodes import ScalarValue

_WORDS: dict[str, ScalarValue] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{
        sign + word: float(sign + "inf")
        for sign in ("", "+", "-")
        for word in (".inf", ".Inf", ".INF")
    },
}
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES = {"0o": 8, "0x": 16}

TAGS: dict[str, type] = {
    "tag:yaml.org,2002:null": type(None),
    "tag:yaml.org,2002:bool": bool,
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
    "tag:yaml.org,2002:str": str,
    "!": str,  # the non-specific tag: not resolved
}


def resolve(text: str) -> ScalarValue:
    """Return the value of a plain scalar.

    Raises:
        OverflowError: for a number with too many digits, or one beyond what a float holds.

    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _INTEGER.fullmatch(text):
        return integer(text)
    return number(text) if _FLOAT.fullmatch(text) else text


def integer(text: str) -> int:
    """Return the value of an integer that is written in full, in octal or in hexadecimal.

    Raises:
        OverflowError: for one that has too many digits.

    """
    if len(text) > MAX_DIGITS:
        raise OverflowError(f"this number has {len(text):,} digits")
    base = _BASES.get(text[:2], 10)
    return int(text if base == 10 else text[2:], base)


def number(text: str) -> float:
    """Return the value of a number with a fraction or an exponent.

    Raises:
        OverflowError: for one beyond what a float holds, which would become infinite.

    """
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise OverflowError("this number is larger than a float can hold")
    return value


def resolve_tagged(text: str, wanted: type) -> ScalarValue:
    """Return the value of a scalar with one of the `TAGS`.

    Raises:
        OverflowError: as `resolve` does.
        TypeError: where the text is not written as the tag says.

    """
    if wanted is str:
        return text
    value = resolve(text)
    if wanted is float and _FLOAT.fullmatch(text):
        return number(text)
    if type(value) is not wanted:
        raise TypeError
    return value
