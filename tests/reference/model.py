"""What a key template gives for an event, told as plainly as we can: slow, obvious, independent.

Shares no code with `jobspec` and must not import it: the two are compared with each other, and
each with what the reference answered. Nothing here is meant to be fast, or to refuse anything.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING as CEILING
from decimal import ROUND_FLOOR as FLOOR
from decimal import ROUND_HALF_EVEN as HALF_EVEN
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

TOKEN = re.compile(
    r"""\s* (?: (?P<path> event (?: \s*\.\s* [A-Za-z_][A-Za-z0-9_]* )+ )
              | ' (?P<single> (?: [^'\\] | \\. )* ) '
              | " (?P<double> (?: [^"\\] | \\. )* ) "
              | (?P<plus> \+ ) )""",
    re.VERBOSE,
)
ESCAPE = re.compile(
    r"""\\ (?: (?P<control> [abfnrtv"'\\?`] )
          | [xX] (?P<x> [0-9a-fA-F]{2} ) | u (?P<u> [0-9a-fA-F]{4} ) | U (?P<U> [0-9a-fA-F]{8} )
          | (?P<octal> [0-3][0-7][0-7] )
          | (?P<illegal> ) )""",
    re.VERBOSE,
)
CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class IllegalEscapeError(Exception):
    """The reference can't evaluate a template with one, where it processes escapes at all."""


class Special:
    """A value that no event holds. Its name is how it prints."""

    def __init__(self, name: str) -> None:
        self.name = name


UNKNOWN = Special("unknown")
ERROR = Special("no such overload: _+_")
LISTED_NULL = Special("NULL_VALUE")


def answer(template: str, event: dict[str, Any]) -> tuple[str, str]:
    """Return the text and the outcome of a template that the reference can parse."""
    try:
        terms = read_terms(template)
    except IllegalEscapeError:
        return "<invalid>", "error"
    paths = [term for term in terms if isinstance(term, tuple)]
    data = decode(event.get("data"))
    total: Any = None
    for number, term in enumerate(terms):
        value = term if isinstance(term, str) else look_up(term, paths, data)
        total = value if number == 0 else add(total, value)
    if total is UNKNOWN:
        total = False
    if total is ERROR:
        return "<invalid>", "error"
    return show(total), "absent" if total is False else "key"


def read_terms(template: str) -> list[str | tuple[str, ...]]:
    """Return a tuple of names for a path, a str for a literal."""
    terms: list[str | tuple[str, ...]] = []
    for token in TOKEN.finditer(template):
        if token["path"] is not None:
            names = [name.strip() for name in token["path"].split(".")]
            terms.append(tuple(names[2:]))
        elif token["plus"] is None:
            raw = token["single"] if token["single"] is not None else token["double"]
            terms.append(unescape(raw) if "vars." in template else raw)
    return terms


def unescape(raw: str) -> str:
    return ESCAPE.sub(one_character, raw)


def one_character(escape: re.Match[str]) -> str:
    if escape["illegal"] is not None:
        raise IllegalEscapeError
    if escape["control"] is not None:
        return CONTROLS.get(escape["control"], escape["control"])
    if escape["octal"] is not None:
        return chr(int(escape["octal"], 8))
    code = int(escape["x"] or escape["u"] or escape["U"], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise IllegalEscapeError
    return chr(code)


def decode(value: Any) -> Any:
    if isinstance(value, str):
        return decode_text(value)
    if isinstance(value, dict):
        return {decode_text(name): decode(child) for name, child in value.items()}
    if isinstance(value, list | tuple):
        return [decode(child) for child in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def decode_text(text: str) -> str:
    def paired(match: re.Match[str]) -> str:
        high, low = match[0]
        return chr(0x10000 + ((ord(high) - 0xD800) << 10) + (ord(low) - 0xDC00))

    joined = re.sub("[\ud800-\udbff][\udc00-\udfff]", paired, text)
    return re.sub("[\ud800-\udfff]", "\ufffd", joined)


def look_up(path: tuple[str, ...], paths: list[tuple[str, ...]], data: Any) -> Any:
    for other in paths:
        if other[: len(path)] == path and walk(other, data) is UNKNOWN:
            return UNKNOWN
    return walk(path, data)


def walk(path: tuple[str, ...], value: Any) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return UNKNOWN
        value = value[name]
    return value


def add(left: Any, right: Any) -> Any:
    if left is UNKNOWN and right is UNKNOWN:
        return False
    if left is UNKNOWN:
        return right
    if right is UNKNOWN:
        return left
    if type(left) is not type(right):
        return show(left) + show(right)
    if isinstance(left, list):
        return join_lists(left, right)
    if isinstance(left, str | float):
        return left + right
    return ERROR


def join_lists(left: list[Any], right: list[Any]) -> list[Any]:
    if not left:
        return right
    if not right:
        return left
    return [LISTED_NULL if item is None else item for item in left + right]


def show(value: Any) -> str:
    return "NULL_VALUE" if value is None else show_nested(value)


def show_nested(value: Any) -> str:
    if isinstance(value, Special):
        return value.name
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return show_number(value)
    if isinstance(value, list):
        return "[" + " ".join(show_nested(item) for item in value) + "]"
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode())
        return "map[" + " ".join(f"{name}:{show_nested(value[name])}" for name in names) + "]"
    return str(value)


def show_number(number: float) -> str:
    """Return Go's `%v`: the fewest digits that give the number back; a power from 1e+06 up."""
    if number in (float("inf"), float("-inf")):
        return "+Inf" if number > 0 else "-Inf"
    if number == 0:
        return "-0" if str(number).startswith("-") else "0"
    digits = fewest_digits(number)
    if -4 <= digits.adjusted() < 6:
        return f"{digits:f}"
    mantissa, power = f"{digits:e}".split("e")
    return f"{mantissa}e{power[0]}{power[1:]:0>2}"


def fewest_digits(number: float) -> Decimal:
    """Return the nearest of the shortest decimals that give the number back.

    It is not always the number rounded to that length: below a power of two the next number is
    closer than above it, so 2^-24 is 5.960464477539063e-08, though it ends in ...0625.
    """
    exact = Decimal(number)
    for length in range(1, 18):
        roundings = [Context(length, way).plus(exact) for way in (HALF_EVEN, FLOOR, CEILING)]
        found = [rounded for rounded in roundings if float(rounded) == number]
        if found:
            return min(found, key=lambda decimal: abs(Fraction(decimal) - Fraction(number)))
    raise AssertionError(number)
