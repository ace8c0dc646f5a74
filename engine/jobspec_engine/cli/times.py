"""Times, ages and rates as they are written on a command line."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import click

from jobspec_engine.arguments import LONGEST

# ASCII digits, and no more than a timedelta has room for.
_AGE = re.compile(r"([0-9]{1,9})([smhd])")
_LENGTH = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)([smh]?)")
_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)/([smh])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _age(text: str) -> timedelta | None:
    """Return the length of a time such as `7d`; None for anything else."""
    found = _AGE.fullmatch(text)
    return None if found is None else timedelta(**{_UNITS[found[2]]: int(found[1])})


def _moment(text: str) -> datetime | None:
    """Return a time, aware: one without a zone is of this host's. None for anything else."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        return None


class At(click.ParamType[datetime]):
    """A time."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the time, aware."""
        moment = _moment(value)
        if moment is None:
            self.fail("write a time such as `2026-01-31T12:00:00+00:00`", param, ctx)
        return moment


class Since(click.ParamType[datetime | timedelta]):
    """A time, or how long ago."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | timedelta:
        """Return the time, aware, or how long ago it was."""
        ago = _age(value)
        if ago is not None and ago > LONGEST:
            self.fail(f"write {LONGEST.days}d or less", param, ctx)
        since = _moment(value) if ago is None else ago
        if since is None:
            self.fail("write `2h`, `7d` or a time such as `2026-01-31T12:00:00+00:00`", param, ctx)
        return since


class Age(click.ParamType[timedelta | None]):
    """How long something is kept; None: for ever."""

    name = "age"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta | None:
        """Return the length of the time."""
        if value == "forever":
            return None
        if value.isascii() and value.isdecimal():
            self.fail(f"the unit is missing: write `{value}d` for days, or s, m or h", param, ctx)
        age = _age(value)
        if age is None or age > LONGEST:
            self.fail("write `12h`, `30d` (up to `36500d`) or `forever`", param, ctx)
        return age


class Length(click.ParamType[timedelta]):
    """How long something may take, `least` or more: `1.5s`, `2m`, or a number of seconds."""

    name = "time"

    def __init__(self, least: timedelta) -> None:
        self._least = least

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Return the length of the time."""
        found = _LENGTH.fullmatch(value)
        if found is None:
            self.fail("write a length of time, such as `30s` or `2m`", param, ctx)
        length = timedelta(**{_UNITS[found[2] or "s"]: float(found[1])})
        if length < self._least:
            self.fail(f"write `{self._least.total_seconds():g}s` or more", param, ctx)
        return length


class Rate(click.ParamType[float]):
    """So many a second, minute or hour: a number a second."""

    name = "rate"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return how many that is in a second."""
        found = _RATE.fullmatch(value)
        if found is None or float(found[1]) == 0:
            self.fail("write a number and a unit, such as `10/s`, `30/m` or `5/h`", param, ctx)
        return float(found[1]) / timedelta(**{_UNITS[found[2]]: 1}).total_seconds()
