"""How long what has ended is kept, and the deletion of what is older, in small transactions.

Dead letters go first, then runs, then events, since each of them holds the next. An idempotency key
goes when it is free again, never before: one that counts for good outlives its run and its event.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from jobspec_engine.arguments import require_length
from jobspec_engine.errors import ArgumentError

if TYPE_CHECKING:
    from jobspec_engine.calls import Call, Calls
    from jobspec_engine.upkeep_statements import SeenEvents, SeenRuns, UpkeepStatements


@dataclass(frozen=True, slots=True)
class Retention:
    """How long runs are kept after their end, events after they came, dead letters; None: for good.

    An event is kept for as long as a run or a dead letter has it, and a run for as long as it has a
    dead letter. `batch` is how many rows one transaction looks at.
    """

    runs: timedelta | None = timedelta(days=30)
    events: timedelta | None = timedelta(days=30)
    dead_letters: timedelta | None = timedelta(days=90)
    batch: int = 1000

    def __post_init__(self) -> None:
        """Raise `ArgumentError` for an age, or a number of rows, that can't be meant."""
        for name in ("runs", "events", "dead_letters"):
            if (age := getattr(self, name)) is not None:
                require_length(name, age)
        if self.batch < 1:
            raise ArgumentError(f"batch must be at least 1, not {self.batch}")


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows were deleted."""

    dead_letters: int
    runs: int
    events: int
    keys: int


def prune(retention: Retention, statements: UpkeepStatements) -> Calls[Pruned]:
    """Delete what is older than it is to be kept; return how much that was.

    Every statement is a transaction of its own.
    """
    batch = retention.batch
    dead_letters = runs = events = 0
    if (age := retention.dead_letters) is not None:
        dead_letters = yield from _until_few(statements.prune_dead_letters(age, batch), batch)
    if retention.runs is not None:
        runs = yield from _prune_runs(retention.runs, batch, statements)
    if retention.events is not None:
        events = yield from _prune_events(retention.events, batch, statements)
    keys = yield from _until_few(statements.prune_keys(batch), batch)
    return Pruned(dead_letters, runs, events, keys)


def _until_few(call: Call[int], batch: int) -> Calls[int]:
    """Repeat a deletion while it finds as much as it may take."""
    deleted = 0
    while True:
        rows: list[int] = yield call
        deleted += rows[0]
        if rows[0] < batch:
            return deleted


def _prune_runs(age: timedelta, batch: int, statements: UpkeepStatements) -> Calls[int]:
    deleted = 0
    behind: int | None = 0
    while behind is not None:
        rows: list[SeenRuns] = yield statements.prune_runs(behind, age, batch)
        behind = rows[0].last
        deleted += rows[0].deleted
    return deleted


def _prune_events(age: timedelta, batch: int, statements: UpkeepStatements) -> Calls[int]:
    deleted = 0
    since: datetime | None = None
    behind: str | None = ""
    while behind is not None:
        rows: list[SeenEvents] = yield statements.prune_events(since, behind, age, batch)
        since, behind = rows[0].since, rows[0].last
        deleted += rows[0].deleted
    return deleted
