"""Cron schedules as the reference reads them, and the times at which they fire.

Three things surprise (crons.jsonl): day and weekday are alternatives where neither is `*`; a step
above one takes the `*` away, so `*/2` is a restriction there; and clock changes are walked
through in elapsed time, so a local time that is skipped is not made up for, and one that is
repeated fires twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, datetime, timedelta
from functools import lru_cache
from itertools import product, takewhile
from typing import TYPE_CHECKING, Literal

from jobspec.cron import CronFields, ScheduleError, read_cron

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

__all__ = ["ClockChange", "Schedule", "ScheduleError"]

_YEARS = 5  # how far the reference looks for the next time
_SECOND, _MINUTE = timedelta(seconds=1), timedelta(minutes=1)
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
# A clock change concerns the hours before it and the day behind it: the reference's walk stays
# half an hour late until midnight where clocks move by half an hour.
_BEFORE, _BEHIND = timedelta(hours=3), timedelta(hours=25)
_LONGEST_MONTH = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of the clocks that a schedule meets: `local` is the first time it concerns.

    `skipped`: the schedule does not fire at that local time on that day, which may not have it.
    `repeated`: it fires once more than it should, since the day has that time twice, or since
    the reference walks past the end of an hour where clocks move by half of one. `at` is the
    moment of the change, in UTC.
    """

    kind: Literal["skipped", "repeated"]
    at: datetime
    local: datetime


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cron schedule. Two are equal where their texts are."""

    text: str
    fields: CronFields = field(compare=False, repr=False)
    zone: ZoneInfo = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Return the schedule of a text: five fields, with `TZ=` or `CRON_TZ=` and a zone before.

        Without a zone the fields are in UTC.

        Raises:
            ScheduleError: for any text that the reference refuses (crons.jsonl).

        """
        fields, zone = read_cron(text)
        return cls(text, fields, zone)

    def next(self, after: datetime) -> datetime | None:
        """Return the first time later than `after`, in UTC.

        None says that there is none in the year of `after` and the five that follow it: as far
        as the reference looks.

        Raises:
            ValueError: where `after` names no time zone.

        """
        if after.tzinfo is None:
            raise ValueError("the time after which to look needs a time zone")
        if not self.fields.are_possible:
            return None
        try:
            return _Search(self.fields, self.zone, after).run()
        except OverflowError:  # beyond the year 9999
            return None

    def upcoming(self, after: datetime) -> Iterator[datetime]:
        """Yield the times later than `after`, each in UTC, until `next` finds none."""
        found = self.next(after)
        while found is not None:
            yield found
            found = self.next(found)

    @property
    def ever_fires(self) -> bool:
        """Whether any date matches: `0 0 31 2 *` has none."""
        fields = self.fields
        if not fields.are_possible:
            return False
        if not (fields.any_day or fields.any_weekday) and fields.weekdays:
            return True
        return any(min(fields.days) <= _LONGEST_MONTH.get(month, 31) for month in fields.months)

    def clock_changes(self, after: datetime) -> tuple[ClockChange, ...]:
        """Return the clock changes in the year from `after` that this schedule meets.

        Empty for a schedule that fires in every hour, which goes on evenly in elapsed time.

        Raises:
            ValueError: where `after` names no time zone.

        """
        if after.tzinfo is None:
            raise ValueError("the time after which to look needs a time zone")
        if len(self.fields.hours) == 24:
            return ()
        day = after.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        changes = _offset_changes(self.zone, day)
        return tuple(met for change in changes for met in self._meets(change))

    def _meets(self, change: _OffsetChange) -> Iterator[ClockChange]:
        """Yield what a clock change does to this schedule, each with the first minute it concerns.

        The times around the change are compared with those that the clock on the wall promises:
        the reference's walk can also pass over a time that does exist.
        """
        early, late = change.at - _BEFORE, change.at + _BEHIND
        times = takewhile(lambda time: time < late, self.upcoming(early - _SECOND))
        fired = Counter(time.astimezone(self.zone).replace(tzinfo=None) for time in times)
        first, last = early + change.before, late + change.after
        promised = self._promised(first.replace(tzinfo=None), last.replace(tzinfo=None))
        skipped = next((at for at in promised if not fired[at]), None)
        repeated = next((at for at, count in fired.items() if count > self.fields.match(at)), None)
        if skipped is not None:
            yield ClockChange("skipped", change.at, skipped)
        if repeated is not None:
            yield ClockChange("repeated", change.at, repeated)

    def _promised(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Yield the wall times from `first` to before `last` that match, on any clock."""
        fields, day = self.fields, first.replace(hour=0, minute=0)
        while day < last:
            if day.month in fields.months and fields.match_date(day):
                for hour, minute in product(sorted(fields.hours), sorted(fields.minutes)):
                    time = day.replace(hour=hour, minute=minute)
                    if first <= time < last:
                        yield time
            day += _DAY


class _Search:
    """The search for the next time, step by step as robfig/cron's `SpecSchedule.Next` takes it.

    The steps decide what happens around clock changes, so they are kept: dates move on the
    calendar, hours and minutes in elapsed time, and a field that wraps starts over at the month.
    """

    def __init__(self, fields: CronFields, zone: ZoneInfo, after: datetime) -> None:
        self._fields = fields
        self._zone = zone
        self._reset = False  # whether the parts below the first that moved are at their start
        whole = after.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
        self._time = whole.astimezone(zone)

    def run(self) -> datetime | None:
        last_year = self._time.year + _YEARS
        while self._time.year <= last_year:
            if self._month() and self._day() and self._hour() and self._minute() and self._second():
                return self._time.astimezone(UTC)
        return None

    def _month(self) -> bool:
        """Go to a month that matches; False where the year wrapped."""
        while self._time.month not in self._fields.months:
            self._start_at(day=1, hour=0)
            self._calendar(months=1)
            if self._time.month == 1:
                return False
        return True

    def _day(self) -> bool:
        while not self._fields.match_date(self._time):
            self._start_at(day=self._time.day, hour=0)
            self._calendar(days=1)
            self._back_to_midnight()
            if self._time.day == 1:
                return False
        return True

    def _back_to_midnight(self) -> None:
        """Undo what a clock change at midnight did to the hour."""
        hour = self._time.hour
        if hour:
            self._elapse((24 - hour if hour > 12 else -hour) * _HOUR)

    def _hour(self) -> bool:
        while self._time.hour not in self._fields.hours:
            self._start_at(day=self._time.day, hour=self._time.hour)
            self._elapse(_HOUR)
            if self._time.hour == 0:
                return False
        return True

    def _minute(self) -> bool:
        while self._time.minute not in self._fields.minutes:
            if not self._reset:
                self._reset = True
                self._elapse(-timedelta(seconds=self._time.second))
            self._elapse(_MINUTE)
            if self._time.minute == 0:
                return False
        return True

    def _second(self) -> bool:
        """Go to the start of a minute; False where that took a step, which wraps."""
        if self._time.second == 0:
            return True
        self._reset = True
        self._elapse(timedelta(seconds=60 - self._time.second))
        return False

    def _start_at(self, *, day: int, hour: int) -> None:
        """Set the parts below to their start, once in a search."""
        if not self._reset:
            self._reset = True
            self._time = _at(datetime(self._time.year, self._time.month, day, hour), self._zone)  # noqa: DTZ001 - a wall clock

    def _calendar(self, *, months: int = 0, days: int = 0) -> None:
        wall = self._time.replace(tzinfo=None, day=1)
        years, month = divmod(wall.month - 1 + months, 12)
        if wall.year + years > MAXYEAR:
            raise OverflowError
        wall = wall.replace(year=wall.year + years, month=month + 1)
        self._time = _at(wall + (self._time.day - 1 + days) * _DAY, self._zone)

    def _elapse(self, by: timedelta) -> None:
        self._time = (self._time.astimezone(UTC) + by).astimezone(self._zone)


def _at(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the time that a wall clock shows, as Go's `time.Date` chooses among two or none.

    Go takes the offset in force at the wall time read as UTC, then the one in force there.
    """
    guess = wall.replace(tzinfo=UTC)
    guess -= _offset(guess, zone)
    return (wall.replace(tzinfo=UTC) - _offset(guess, zone)).astimezone(zone)


def _offset(time: datetime, zone: ZoneInfo) -> timedelta:
    return time.astimezone(zone).utcoffset() or timedelta(0)


@dataclass(frozen=True, slots=True)
class _OffsetChange:
    """A moment at which a zone changes its offset from UTC."""

    at: datetime
    before: timedelta
    after: timedelta


@lru_cache(maxsize=256)
def _offset_changes(zone: ZoneInfo, start: datetime) -> tuple[_OffsetChange, ...]:
    """Return the changes of a zone in the year from `start`. One day never has two."""
    found: list[_OffsetChange] = []
    for number in range(366):
        early, late = start + number * _DAY, start + (number + 1) * _DAY
        before, after = _offset(early, zone), _offset(late, zone)
        if before != after:
            found.append(_OffsetChange(_bisect(zone, early, late), before, after))
    return tuple(found)


def _bisect(zone: ZoneInfo, early: datetime, late: datetime) -> datetime:
    """Return the first minute with the offset of `late`."""
    wanted = _offset(late, zone)
    while late - early > _MINUTE:
        middle = early + (late - early) // 2 // _MINUTE * _MINUTE
        early, late = (early, middle) if _offset(middle, zone) == wanted else (middle, late)
    return late
