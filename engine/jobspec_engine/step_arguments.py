"""What steps are called with: names and times that the database can keep."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from jobspec_engine.arguments import require_text
from jobspec_engine.errors import StepError
from jobspec_engine.events import MAX_NAME_BYTES

_MAX_NAME_BYTES = 255

# Python's calendar ends in the year 9999: a later time could be kept and never be read.
_LONGEST = timedelta(days=366 * 1000)
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)
_EARLIEST = datetime(2, 1, 1, tzinfo=UTC)


def require_name(name: object) -> None:
    """Raise `StepError` for a name that a step can't have."""
    require_text("a step's name", name, max_bytes=_MAX_NAME_BYTES, error=StepError)


def require_event(step: str, event: object) -> None:
    """Raise `StepError` for a name that no event can have."""
    what = f"the name of the event that step `{step}` waits for"
    require_text(what, event, max_bytes=MAX_NAME_BYTES, error=StepError)


def require_length(step: str, length: object) -> None:
    """Raise `StepError` for what is no length of time that can be waited."""
    if not isinstance(length, timedelta):
        raise StepError(f"step `{step}` takes a timedelta to wait for, not {type(length).__name__}")
    if abs(length) > _LONGEST:
        raise StepError(f"step `{step}` waits for {length}: a thousand years are the most")


def require_time(step: str, at: object) -> None:
    """Raise `StepError` for what is no time that can be waited for."""
    if not isinstance(at, datetime):
        raise StepError(f"step `{step}` takes a datetime to sleep until, not {type(at).__name__}")
    if at.utcoffset() is None:
        raise StepError(f"step `{step}` sleeps until a time in no zone: give it a time zone")
    if not _EARLIEST <= at < _LATEST:
        raise StepError(f"step `{step}` sleeps until {at}, not between the years 2 and 9998")
