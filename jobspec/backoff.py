"""How long a failed run waits for its next attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import log
from typing import Literal

Policy = Literal["reference", "exponential", "fixed", "never"]

# The reference's table, in seconds; the last entry serves all further attempts.
_TABLE = (15, 30, 60, 2 * 60, 5 * 60, 10 * 60, 20 * 60, 40 * 60, 3600, 2 * 3600)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a run waits for its next attempt, when one has failed.

    | policy | wait |
    |---|---|
    | `reference` | that of the reference's table, from 15 s to 2 h |
    | `exponential` | `delay`, then each time `factor` times as long, at most `max` |
    | `fixed` | `delay` |
    | `never` | there is no next attempt |

    Each wait is made longer or shorter at random, by up to the part `jitter` of it.
    """

    policy: Policy = "reference"
    delay: timedelta = timedelta(0)
    max: timedelta = timedelta(days=1)
    factor: float = 2.0
    jitter: float = 0.0

    def after(self, attempt: int) -> timedelta | None:
        """Return the wait after attempt number `attempt`, counted from 1, without its jitter.

        None: the run is not retried.
        """
        match self.policy:
            case "reference":
                return timedelta(seconds=_TABLE[min(attempt, len(_TABLE)) - 1])
            case "exponential":
                return self._grown(attempt - 1)
            case "fixed":
                return self.delay
            case "never":
                return None

    def _grown(self, times: int) -> timedelta:
        """Return `delay` grown some times; by logarithms, since powers soon overflow."""
        if times * log(self.factor) >= log(self.max / self.delay):
            return self.max
        return self.delay * self.factor**times


@dataclass(frozen=True, slots=True)
class ErrorRetry:
    """How the errors of a class, or of one below it, are retried. `error` is its `module:name`."""

    error: str
    backoff: Backoff


@dataclass(frozen=True, slots=True)
class Retry:
    """How failed attempts are retried: by the first of `on` that the error fits, or `backoff`."""

    backoff: Backoff = Backoff()
    on: tuple[ErrorRetry, ...] = ()
