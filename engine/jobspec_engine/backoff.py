"""How long a failed run waits for its next attempt."""

from __future__ import annotations

from datetime import timedelta

# The reference's table; the last entry serves all further attempts.
_SECONDS = (15, 30, 60, 2 * 60, 5 * 60, 10 * 60, 20 * 60, 40 * 60, 3600, 2 * 3600)


def delay_after(attempt: int) -> timedelta:
    """Return the wait after attempt number `attempt`, counted from 1, has failed."""
    return timedelta(seconds=_SECONDS[min(attempt, len(_SECONDS)) - 1])
