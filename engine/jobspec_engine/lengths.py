"""Lengths of time on their way to the database: as time that passes, without calendar days.

psycopg would keep the days of a `timedelta` apart, and Postgres adds days by the calendar of the
session's time zone: where summer time begins or ends, one of them has 23 or 25 hours.
"""

from __future__ import annotations

from datetime import timedelta
from struct import Struct
from typing import TYPE_CHECKING

from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    from psycopg.adapt import AdaptersMap

_MICROSECOND = timedelta(microseconds=1)

# Microseconds, days, months.
_INTERVAL = Struct("!qii").pack


def interval(length: timedelta) -> bytes:
    """Return a length of time as Postgres's binary interval, of 16 bytes."""
    return _INTERVAL(length // _MICROSECOND, 0, 0)


def as_text(length: timedelta) -> str:
    """Return a length of time as Postgres reads it, whatever the session's `IntervalStyle`.

    As hours, which may be any number. Of other units Postgres 14 reads 2,147,483,647 at most: that
    many microseconds are 36 minutes.
    """
    sign = "-" if length < timedelta(0) else ""
    seconds, microseconds = divmod(abs(length) // _MICROSECOND, 1_000_000)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}.{microseconds:06}"


class _IntervalDumper(Dumper):
    """Writes a length of time."""

    format = Format.BINARY
    oid = 1186

    def dump(self, obj: timedelta) -> bytes:
        """Return a length of time as a binary interval."""
        return interval(obj)


class _TextDumper(Dumper):
    """Writes a length of time of a list, of which psycopg makes text."""

    oid = 1186

    def dump(self, obj: timedelta) -> bytes:
        """Return a length of time as text."""
        return as_text(obj).encode()


def write_lengths(adapters: AdaptersMap) -> None:
    """Have lengths of time written as such by what has these adapters: it must be ours alone."""
    adapters.register_dumper(timedelta, _TextDumper)
    adapters.register_dumper(timedelta, _IntervalDumper)
