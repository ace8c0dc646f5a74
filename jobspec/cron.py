"""The text of a cron schedule to its fields, by the rules of robfig/cron's five-field parser.

crons.jsonl decides. Kept from the parser although they look odd: empty parts of a list are
skipped, so `1,,2` is a list and `,` is a field that nothing matches; what follows `*-` is not
looked at; numbers may carry a plus sign.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, NoReturn
from zoneinfo import ZoneInfo, available_timezones

from jobspec.source import Span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

# What Go's strings.Fields takes for white space; Python's \s has four control characters more.
_FIELD = re.compile(r"[^\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_NUMBER = re.compile(r"\+?[0-9]{1,19}")
_ZONE = re.compile(r"(?:CRON_)?TZ=")
_SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIVE_FIELDS = "write minute, hour, day, month and weekday, such as `0 3 * * *`"
_STEP_LIMIT = 2**63 - 1  # Go's int


class ScheduleError(ValueError):
    """A text that is not a cron schedule. `span` is the place in it, `help` says what to write."""

    def __init__(self, message: str, span: Span, advice: str) -> None:
        super().__init__(message)
        self.span = span
        self.help = advice


@dataclass(frozen=True, slots=True)
class CronFields:
    """What each field matches. Weekdays count from Sunday, 0."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    @property
    def are_possible(self) -> bool:
        """Whether every field that has to match can."""
        dates = (self.days, self.weekdays)
        has_date = all(dates) if self.any_day or self.any_weekday else any(dates)
        return bool(self.minutes and self.hours and self.months and has_date)

    def match_date(self, time: datetime) -> bool:
        """Whether day and weekday match: both if one is `*`, and either of them otherwise."""
        in_days = time.day in self.days
        in_weekdays = time.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return in_days and in_weekdays
        return in_days or in_weekdays

    def match(self, time: datetime) -> bool:
        """Whether the wall time matches all fields."""
        return (
            time.minute in self.minutes
            and time.hour in self.hours
            and time.month in self.months
            and self.match_date(time)
        )


@dataclass(frozen=True, slots=True)
class _Unit:
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()

    @property
    def one(self) -> str:
        """The name with its article."""
        return f"an {self.name}" if self.name == "hour" else f"a {self.name}"


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_UNITS = (
    _Unit("minute", 0, 59),
    _Unit("hour", 0, 23),
    _Unit("day of the month", 1, 31),
    _Unit("month", 1, 12, _MONTHS),
    _Unit("weekday", 0, 6, _WEEKDAYS),
)


def read_cron(text: str) -> tuple[CronFields, ZoneInfo]:
    """Return the fields and the zone of a cron text.

    Raises:
        ScheduleError: for any text that the reference refuses.

    """
    zone, start = _zone(text)
    words = [_Word(text, Span(*found.span())) for found in _FIELD.finditer(text, start)]
    _check_count(text, words)
    values = [_Field(word, unit).read() for word, unit in zip(words, _UNITS, strict=True)]
    minutes, hours, days, months, weekdays = (matched for matched, _ in values)
    return CronFields(minutes, hours, days, months, weekdays, values[2][1], values[4][1]), zone


def _zone(text: str) -> tuple[ZoneInfo, int]:
    """Return the zone that a text names in front, and where its fields start."""
    prefix = _ZONE.match(text)
    if prefix is None:
        return ZoneInfo("UTC"), 0
    end = text.find(" ", prefix.end())
    if end < 0:
        span = Span(prefix.end(), len(text))
        raise ScheduleError("a cron schedule is missing behind the zone", span, _FIVE_FIELDS)
    name = text[prefix.end() : end]
    try:
        return ZoneInfo(name or "UTC"), end  # Go takes no name for UTC
    except (KeyError, ValueError, OSError):
        message = f"`{name}` is not a time zone"
        raise ScheduleError(message, Span(prefix.end(), end), _similar_zone(name)) from None


def _similar_zone(name: str) -> str:
    by_lower = {zone.lower(): zone for zone in available_timezones()}
    close = get_close_matches(name[:60].lower(), by_lower, n=1)
    return f"did you mean `{by_lower[close[0]]}`?" if close else "write one like `Europe/Berlin`"


@dataclass(frozen=True, slots=True)
class _Word:
    """A piece of the text and its place."""

    source: str
    span: Span

    @property
    def text(self) -> str:
        return self.source[slice(*self.span)]

    def split(self, separator: str) -> Iterator[_Word]:
        """Yield the pieces between separators, empty ones included."""
        start = self.span.start
        for piece in self.text.split(separator):
            yield _Word(self.source, Span(start, start + len(piece)))
            start += len(piece) + 1

    def refuse(self, message: str, advice: str) -> NoReturn:
        raise ScheduleError(message, self.span, advice)


def _check_count(text: str, words: list[_Word]) -> None:
    if len(words) == len(_UNITS):
        return
    if not words:
        raise ScheduleError("a cron schedule is missing here", Span(0, len(text)), _FIVE_FIELDS)
    everything = _Word(text, Span(words[0].span.start, words[-1].span.end))
    if everything.text.startswith("@"):
        written = _SHORTHANDS.get(everything.text)
        advice = f"write `{written}`" if written else _FIVE_FIELDS
        everything.refuse("shorthands are not part of this cron dialect", advice)
    advice = _FIVE_FIELDS
    if len(words) == len(_UNITS) + 1:
        advice = "leave out the seconds: the first field is the minute"
    everything.refuse(f"a cron schedule has five fields, and this has {len(words)}", advice)


class _Field:
    """Reads one field: a list of values, ranges and steps of one unit."""

    def __init__(self, word: _Word, unit: _Unit) -> None:
        self._word = word
        self._unit = unit

    def read(self) -> tuple[frozenset[int], bool]:
        """Return the values that match, and whether the field counts as `*`."""
        ranges = [self._range(part) for part in self._word.split(",") if part.text]
        matched = frozenset(value for values, _ in ranges for value in values)
        return matched, any(is_any for _, is_any in ranges)

    def _range(self, part: _Word) -> tuple[range, bool]:
        bounds, *steps = part.split("/")
        low, *highs = bounds.split("-")
        is_any = low.text in ("*", "?")
        if is_any:
            first, last = self._unit.least, self._unit.most
        else:
            first, last = self._bounds(bounds, low, highs)
        step = self._step(part, steps)
        if steps and not highs:
            last = self._unit.most  # `5/10` is `5-59/10`
        if first > last:
            bounds.refuse(
                "this range ends before it starts",
                f"write two ranges: `{first}-{self._unit.most},{self._unit.least}-{last}`",
            )
        return range(first, last + 1, step), is_any and step == 1

    def _bounds(self, bounds: _Word, low: _Word, highs: list[_Word]) -> tuple[int, int]:
        if len(highs) > 1:
            bounds.refuse("a range has two ends", "write `1-5`")
        first = self._value(low)
        return first, self._value(highs[0]) if highs else first

    def _step(self, part: _Word, steps: list[_Word]) -> int:
        if len(steps) > 1:
            part.refuse("a range has one step", "write `*/5`")
        if not steps:
            return 1
        step = int(steps[0].text) if _NUMBER.fullmatch(steps[0].text) else 0
        if not 0 < step <= _STEP_LIMIT:
            steps[0].refuse(
                f"`{steps[0].text}` is not a step", "write a whole number from 1, such as `*/5`"
            )
        return step

    def _value(self, word: _Word) -> int:
        """Return the number of one value, which may be a name."""
        unit, text = self._unit, word.text
        if text.lower() in unit.names:
            return unit.least + unit.names.index(text.lower())
        if not text:
            word.refuse(f"{unit.one} is missing here", self._advice(text))
        if not _NUMBER.fullmatch(text) or not unit.least <= int(text) <= unit.most:
            word.refuse(f"`{text}` is not {unit.one}", self._advice(text))
        return int(text)

    def _advice(self, text: str) -> str:
        unit = self._unit
        if text == "7" and unit.names is _WEEKDAYS:
            return "write `0` or `SUN` for Sunday"
        if any(char in text for char in "LW#"):
            return "`L`, `W` and `#` are not part of this cron dialect"
        names = (
            f", or from {unit.names[0].upper()} to {unit.names[-1].upper()}" if unit.names else ""
        )
        return f"write a number from {unit.least} to {unit.most}{names}"
