"""How long a run and its attempts may take, and what is said of one that took longer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from jobspec import Timeouts
    from jobspec_engine.rows import Claimed

NO_TIME = timedelta(0)


class OverdueError(TimeoutError):
    """The run's time is up: it ends, and is not retried."""

    def __init__(self, reason: Literal["start-timeout", "finish-timeout"], message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Limits:
    """The time that a run has, from the moment of its claim.

    From there to its end this process counts the time. What was before, the database knows.
    """

    run: Claimed
    timeouts: Timeouts
    _claimed_at: float = field(default_factory=time.monotonic)

    def require_time(self) -> None:
        """Raise `OverdueError` if the time was up at the claim: the handler must not be entered."""
        start, waited = self.timeouts.start, self.run.waited
        if start is not None and waited is not None and waited > start:
            message = f"it had waited {_said(waited)} for its start, longer than {_said(start)}"
            raise OverdueError("start-timeout", message)
        if self.time_left() == NO_TIME:
            raise self._unfinished()

    def time_left(self) -> timedelta | None:
        """Return how long the run has left to finish, not below nothing; None: any time."""
        if self.timeouts.finish is None:
            return None
        since = timedelta(seconds=time.monotonic() - self._claimed_at)
        return max(self.timeouts.finish - self.run.ran - since, NO_TIME)

    def of_attempt(self) -> tuple[float | None, TimeoutError]:
        """Return the seconds that the handler may take, None for any, and what to raise then."""
        attempt, left = self.timeouts.attempt, self.time_left()
        if left is not None and (attempt is None or left <= attempt):
            return left.total_seconds(), self._unfinished()
        if attempt is None:
            return None, TimeoutError()
        error = TimeoutError(f"the attempt took longer than {_said(attempt)}")
        return attempt.total_seconds(), error

    def _unfinished(self) -> OverdueError:
        finish = self.timeouts.finish or NO_TIME
        return OverdueError("finish-timeout", f"it had not finished after {_said(finish)}")


def _said(length: timedelta) -> str:
    return f"{length.total_seconds():g} s"
