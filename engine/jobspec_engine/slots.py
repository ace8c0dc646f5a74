"""How many runs a worker holds: those at work, and a few that were claimed ahead of a free slot."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from jobspec_engine.errors import WorkerError
from jobspec_engine.nearness import near_or_listed
from jobspec_engine.statements import MOST_CLAIMED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from jobspec_engine.entry import Entry
    from jobspec_engine.rows import Held

# Claimed ahead are so many runs as this worker starts within this time, in seconds, but at most so
# many times what it ended in the time before.
_AHEAD = 0.1
_GROWTH = 8

# One that was claimed ahead and has not started within this time, in seconds, is given back: others
# may have a slot for it.
_PATIENCE = 0.5

# How much of the mean duration the latest run makes up.
_WEIGHT = 0.1


@dataclass(frozen=True, slots=True)
class Room:
    """For how many runs of some jobs there is room."""

    job_ids: tuple[str, ...]
    runs: int


class Slots:
    """Counts the runs of a worker: `concurrency` at once, and of some jobs no more than `limits`.

    Runs are claimed ahead that would start soon if each took the mean time of the latest, and no
    more than a few times as many as ended just now: nothing for the first ones, nothing while
    handlers are slow.
    Raises `WorkerError` for a limit of an unknown job or of less than one run.
    """

    def __init__(
        self,
        job_ids: Collection[str],
        concurrency: int,
        limits: Mapping[str, int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _check(job_ids, limits)
        self._concurrency = concurrency
        self._limits = dict(limits)
        open_ids = tuple(one for one in job_ids if one not in limits)
        self._groups = deque(group for group in (open_ids, *((one,) for one in limits)) if group)
        self._clock = clock
        self._held: Counter[str] = Counter()
        self._at_work = 0
        self._waiting: deque[Entry] = deque()
        self._ends: deque[float] = deque()
        self._mean = 0.0

    @property
    def held(self) -> int:
        """How many runs are at work or wait for a slot."""
        return self._at_work + len(self._waiting)

    def rooms(self) -> Iterator[Room]:
        """Tell what to claim, each in turn after the runs of the one before were taken in.

        Jobs with a limit are claimed by themselves; all take turns in coming first.
        """
        self._groups.rotate(-1)
        for group in tuple(self._groups):
            yield Room(group, max(min(self._room(), self._room_of(group), MOST_CLAIMED), 0))

    def take(self, entry: Entry) -> bool:
        """Take a claimed run in. True: start it now; false: it waits for a slot."""
        self._held[entry.run.job_id] += 1
        if self._at_work < self._concurrency:
            self._at_work += 1
            return True
        entry.until = self._clock() + _PATIENCE
        self._waiting.append(entry)
        return False

    def end(self, job_id: str, seconds: float) -> Entry | None:
        """Free the slot of a run that ended; return the one that takes it, to be started."""
        self._held[job_id] -= 1
        self._at_work -= 1
        self._ends.append(self._clock())
        self._mean = self._mean + (seconds - self._mean) * _WEIGHT if self._mean else seconds
        if not self._waiting:
            return None
        self._at_work += 1
        return self._waiting.popleft()

    def give_up(self, *, everything: bool = False) -> list[Entry]:
        """Let go of the runs that have waited too long for a slot, or of all that wait."""
        given_up: list[Entry] = []
        now = self._clock()
        while self._waiting and (everything or self._waiting[0].until <= now):
            given_up.append(self._waiting.popleft())
        self._held.subtract(one.run.job_id for one in given_up)
        return given_up

    def withdraw(self, held: Collection[Held]) -> list[Entry]:
        """Let go of those of these runs that wait."""
        withdrawn = [one for one in self._waiting if one.held in held]
        for one in withdrawn:
            self._waiting.remove(one)
            self._held[one.run.job_id] -= 1
        return withdrawn

    def patience(self) -> list[float]:
        """Return for how many seconds the first of those that wait may go on, if any waits."""
        return [max(one.until - self._clock(), 0) for one in islice(self._waiting, 1)]

    def _room(self) -> int:
        free = self._concurrency - self._at_work
        return free + self._ahead() - len(self._waiting)

    def _room_of(self, group: tuple[str, ...]) -> int:
        limit = self._limits.get(group[0])
        return self._concurrency + self._ahead() if limit is None else limit - self._held[group[0]]

    def _ahead(self) -> int:
        now = self._clock()
        while self._ends and self._ends[0] <= now - _AHEAD:
            self._ends.popleft()
        if not self._ends:
            return 0
        most = len(self._ends) * _GROWTH
        return min(most, int(self._concurrency * _AHEAD / self._mean)) if self._mean else most


def _check(job_ids: Collection[str], limits: Mapping[str, int]) -> None:
    for one in limits:
        if one not in job_ids:
            advice = near_or_listed(one, job_ids)
            raise WorkerError(f"there is a limit for `{one}`, which no job is called; {advice}")
    for job_id, limit in limits.items():
        if limit < 1:
            raise WorkerError(f"the limit of job `{job_id}` is {limit}; it must be at least 1")
