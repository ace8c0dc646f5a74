"""What steps are called with: names and times that the database can keep."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from jobspec_engine.errors import StepError

MAX_NAME_BYTES = 255
_MAX_EVENT_BYTES = 1024

# Python's calendar ends in the year 9999: a later time could be kept and never be read.
_LONGEST = timedelta(days=366 * 1000)
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)
_EARLIEST = datetime(2, 1, 1, tzinfo=UTC)


def require_name(name: object) -> None:
    """Raise `StepError` for a name that a step can't have."""
    if not _is_text(name, MAX_NAME_BYTES):
        raise StepError(
            f"a step's name must have 1 to {MAX_NAME_BYTES} bytes and no U+0000 or half surrogate"
            " pair"
        )


def require_event(step: str, event: object) -> None:
    """Raise `StepError` for a name that no event can have."""
    if not _is_text(event, _MAX_EVENT_BYTES):
        raise StepError(
            f"step `{step}` waits for an event whose name does not have 1 to {_MAX_EVENT_BYTES}"
            " bytes, or has U+0000 or half a surrogate pair"
        )


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


def _is_text(value: object, max_bytes: int) -> bool:
    """Tell whether the database can keep a value as a text of some bytes."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        return 1 <= len(value.encode()) <= max_bytes
    except UnicodeEncodeError:
        return False
