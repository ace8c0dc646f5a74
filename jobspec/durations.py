"""Lengths of time as the reference writes them: `2m`, `1h30m`, `7d`.

Two dialects, as the reference has them (durations.jsonl). Most options speak `str2duration`: a
sign, then numbers with the units `ns`, `us`, `ms`, `s`, `m`, `h`, `d`, `w`. The timeout of a batch
is read by Go's own `time.ParseDuration`: the same without `d` and `w`. Both count nanoseconds in
64 bits, and refuse what does not fit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn

from jobspec.source import Span

_GO_UNITS = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter, which looks the same
    "ns": 1,
}
_DAY = 24 * _GO_UNITS["h"]
_UNITS = {"w": 7 * _DAY, "d": _DAY, **_GO_UNITS}

UNITS, GO_UNITS = tuple(_UNITS), tuple(_GO_UNITS)
"""The units of the two dialects, largest first."""

_PART = re.compile(r"([0-9]*)(\.[0-9]*)?([^0-9.]*)")


class DurationError(ValueError):
    """A text that is not a duration. `span` is the place in it, `help` says what to write."""

    def __init__(self, message: str, span: Span, advice: str) -> None:
        super().__init__(message)
        self.span = span
        self.help = advice


@dataclass(frozen=True, slots=True)
class _Dialect:
    """`bound` is the largest magnitude that a sum may reach on the way."""

    units: dict[str, int]
    bound: int


_MOST = 2**63 - 1
_STR2DURATION = _Dialect(_UNITS, _MOST)
_GO = _Dialect(_GO_UNITS, _MOST + 1)  # Go sums without a sign, and so reaches -2^63


def parse_duration(text: str) -> timedelta:
    """Return the length of time of a text in the `str2duration` dialect, which most options speak.

    A `timedelta` counts microseconds; what is finer rounds up, away from zero, so that a period
    is never shorter than written.

    Raises:
        DurationError: for any text that the reference refuses (durations.jsonl, `ns`).

    """
    return _rounded(nanoseconds(text))


def parse_go_duration(text: str) -> timedelta:
    """Return the length of time of a text in Go's own dialect: that of `batchEvents.timeout`.

    What is finer than a microsecond rounds up, as in `parse_duration`.

    Raises:
        DurationError: for any text that the reference refuses (durations.jsonl, `go_ns`).

    """
    return _rounded(go_nanoseconds(text))


def nanoseconds(text: str) -> int:
    """Return the length of time of a text in the `str2duration` dialect, exactly, in nanoseconds.

    Raises:
        DurationError: as `parse_duration` does.

    """
    return _read_or_advise(text, _STR2DURATION)


def go_nanoseconds(text: str) -> int:
    """Return the length of time of a text in Go's own dialect, exactly, in nanoseconds.

    Raises:
        DurationError: as `parse_go_duration` does.

    """
    return _read_or_advise(text, _GO)


def format_duration(length: timedelta) -> str:
    """Return the shortest text in whole numbers for a length of time: `1h30m`, `7d`, `0s`.

    Days are the largest unit, since people count `8d` and not `1w1d`. `parse_duration` reads the
    text back to the same length where it is no longer than the reference allows, 292 years.
    """
    return _written(length // timedelta(microseconds=1) * 1_000, largest="d")


def _written(length: int, *, largest: str) -> str:
    text, rest = "-" if length < 0 else "", abs(length)
    names = ["d", "h", "m", "s", "ms", "us", "ns"]
    for unit in names[names.index(largest) :]:
        count, rest = divmod(rest, _UNITS[unit])
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def _rounded(length: int) -> timedelta:
    microseconds = -(-abs(length) // 1_000)
    return timedelta(microseconds=-microseconds if length < 0 else microseconds)


class _Refused(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span


def _read_or_advise(text: str, dialect: _Dialect) -> int:
    try:
        return _read(text, dialect)
    except _Refused as refused:
        advice = _advice(text, dialect)
        raise DurationError(str(refused), refused.span, advice) from None


def _read(text: str, dialect: _Dialect) -> int:
    at = 1 if text.startswith(("-", "+")) else 0
    if text[at:] == "0":
        return 0
    if at == len(text):
        _refuse("a duration is missing here", Span(0, at))
    total = 0
    while at < len(text):
        length, at = _part(text, at, dialect)
        total += length
        if total > dialect.bound:
            _refuse_size(text)
    if text.startswith("-"):
        return -total
    return total if total <= _MOST else _refuse_size(text)


def _part(text: str, at: int, dialect: _Dialect) -> tuple[int, int]:
    """Return the length of the number and unit at a place, and where they end."""
    found = _PART.match(text, at)
    whole, point, unit = found.groups() if found else ("", None, "")
    fraction = (point or ".")[1:]
    if not whole and not fraction:
        _refuse_start(text, at)
    unit_at = at + len(whole) + len(point or "")
    if unit not in dialect.units:
        _refuse_unit(Span(at, unit_at), unit, dialect)
    length = _scaled(whole, fraction, dialect.units[unit], dialect.bound)
    return (_refuse_size(text) if length is None else length), unit_at + len(unit)


def _scaled(whole: str, fraction: str, size: int, bound: int) -> int | None:
    """Multiply as Go does: the whole number exactly, the fraction as a float64, truncated."""
    digits = whole.lstrip("0") or "0"
    if len(digits) > len(str(bound)) or int(digits) * size > bound:
        return None
    value, scale = _leading_fraction(fraction, bound)
    return int(digits) * size + int(float(value) * (size / scale))


def _leading_fraction(digits: str, bound: int) -> tuple[int, float]:
    """Return the digits as one number and what it is out of; those beyond 64 bits are dropped."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > _MOST // 10 or value * 10 + int(digit) > bound:
            break
        value, scale = value * 10 + int(digit), scale * 10
    return value, scale


def _refuse_size(text: str) -> NoReturn:
    _refuse("this is longer than a duration can be, about 292 years", Span(0, len(text)))


def _refuse_start(text: str, at: int) -> NoReturn:
    """Refuse what stands where a number must."""
    if text[at].isspace():
        _refuse("a duration has no spaces", Span(at, at + 1))
    if text[at] in "+-":
        _refuse("a sign stands only in front of a duration", Span(at, at + 1))
    if text[at] == ".":
        _refuse("this point has no digits around it", Span(at, at + 1))
    _refuse("a duration starts with a number", Span(at, len(text)))


def _refuse_unit(number: Span, unit: str, dialect: _Dialect) -> NoReturn:
    start = number.end
    space = next((i for i, char in enumerate(unit) if char.isspace()), None)
    if not unit:
        _refuse("this number has no unit", number)
    if space is not None:
        _refuse("a duration has no spaces", Span(start + space, start + space + 1))
    sign = next((i for i, char in enumerate(unit) if char in "+-"), None)
    if sign is not None and unit[:sign] in dialect.units:
        span = Span(start + sign, start + sign + 1)
        _refuse("a sign stands only in front of a duration", span)
    if unit in _UNITS:
        message = f"`{unit}` is not a unit of this option"
    else:
        message = f"`{unit[:20]}` is not a unit of time"
    _refuse(message, Span(start, start + len(unit)))


def _refuse(message: str, span: Span) -> NoReturn:
    raise _Refused(message, span)


# What people write instead, and what they mean by it.

_WORDS = {
    "w": "week weeks wk wks",
    "d": "day days",
    "h": "hour hours hr hrs",
    "m": "minute minutes min mins",
    "s": "second seconds sec secs",
    "ms": "millisecond milliseconds msec msecs",
    "us": "microsecond microseconds usec usecs",
    "ns": "nanosecond nanoseconds nsec nsecs",
}
_UNIT_OF_WORD = {word: unit for unit, words in _WORDS.items() for word in words.split()}
_CALENDAR = re.compile(r"[0-9]\s*(M|mo|months?|Q|quarters?|y|Y|yrs?|years?)\b")
_ISO_8601 = re.compile(
    r"P(?:([0-9]+)W)?(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)S)?)?"
)
_CLOCK = re.compile(r"()()([0-9]{1,6}):([0-9]{2})(?::([0-9]{2}))?")
_BARE = re.compile(r"[+-]?[0-9]+")


def _advice(text: str, dialect: _Dialect) -> str:
    """Say what to write, with the numbers of the text where its meaning is plain."""
    if _CALENDAR.search(text) and not text.startswith("P"):
        return "months and years have no fixed length, write days: `30d`; a minute is `1m`"
    if _BARE.fullmatch(text) and len(text) < 20:
        return f"write `{text}s` for seconds, `{text}m` for minutes"
    meant = _meant(text)
    if meant is None:
        return "write `90s`, `2m` or `1h30m`"
    largest = "d" if "d" in dialect.units else "h"
    return f"write `{_written(meant, largest=largest)}`"


def _meant(text: str) -> int | None:
    """Return the nanoseconds that a text of another notation means, or None."""
    notation = _ISO_8601.fullmatch(text) or _CLOCK.fullmatch(text)
    if notation is not None and any(notation.groups()):
        numbers = zip(notation.groups(), ("w", "d", "h", "m", "s"), strict=True)
        text = "".join(f"{number}{unit}" for number, unit in numbers if number)
    text = re.sub(r"\band\b|,(?=\s)|\s|_", "", text.lower()).replace(",", ".")
    text = re.sub(r"[^\W\d]+", lambda word: _UNIT_OF_WORD.get(word[0], word[0]), text)
    try:
        return _read(text, _STR2DURATION)
    except _Refused:
        return None
