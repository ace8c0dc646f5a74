"""What a worker keeps of the steps of its runs: memos read and written, a few of them in memory."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, TypeVar

from psycopg.errors import UniqueViolation

from jobspec_engine.batch import exchange, prepare
from jobspec_engine.coalesce import Coalescer
from jobspec_engine.errors import StepError
from jobspec_engine.events import new_id
from jobspec_engine.memos import StepKey
from jobspec_engine.nearness import near_or_listed
from jobspec_engine.step_statements import Child
from jobspec_engine.telemetry import carried

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from jobspec import CompiledJobs
    from jobspec_engine.calls import Call, Calls
    from jobspec_engine.events import Event, Sent
    from jobspec_engine.memos import Memo, StepCall
    from jobspec_engine.rows import Held
    from jobspec_engine.step_statements import KeptRow, MemoWrite, StepStatements

Row = TypeVar("Row")
Result = TypeVar("Result")

# Sleeps up to this are waited out in the process: to give a slot back and take it again costs more.
SHORT = timedelta(seconds=10)

# Memos of runs that gave their slots back stay in memory, so that the next pass reads only what is
# new: a loop of sleeps would read all of its memos in each pass. Characters, and runs.
_MAX_SIZE = 64 << 20
_MAX_RUNS = 10_000


class Database(Protocol):
    """How a worker reaches its database: it tries again while that can't be reached."""

    async def fetch(self, call: Call[Row]) -> list[Row]:
        """Execute a statement and return its rows."""
        ...

    async def transact(self, calls: Callable[[], Calls[Result]]) -> Result:
        """Drive a few statements in one transaction, from the start each time it is tried."""
        ...


@dataclass(slots=True)
class Known:
    """The memos of a run that this process has read or written."""

    memos: dict[StepKey, Memo] = field(default_factory=dict[StepKey, "Memo"])
    # What was read last. What was written here since is read once more: somebody else's may be
    # between.
    revision: int = 0
    size: int = 0
    # The waits for which nothing can be found any more by looking back.
    looked_back: set[StepKey] = field(default_factory=set[StepKey])
    _now: tuple[datetime, float] | None = None

    def read(self, now: datetime, memos: Sequence[Memo]) -> None:
        """Take in what was read, and the time by the database."""
        self._now = now, time.monotonic()
        for memo in memos:
            self.add(memo)
            self.revision = max(self.revision, memo.revision)

    def add(self, memo: Memo) -> None:
        """Take in one memo."""
        self.size += _size(memo) - _size(self.memos.get(memo.key))
        self.memos[memo.key] = memo

    def time(self) -> datetime:
        """Tell the database's time."""
        if self._now is None:
            raise AssertionError("nothing was read yet")
        now, then = self._now
        return now + timedelta(seconds=time.monotonic() - then)


class Journal:
    """The memos of a worker's runs.

    `holds` tells whether a lease is held for sure. Sleeps up to `short` are waited out in the
    process.
    """

    def __init__(
        self,
        jobs: CompiledJobs,
        statements: StepStatements,
        database: Database,
        holds: Callable[[Held], bool],
        short: timedelta,
    ) -> None:
        self.holds = holds
        self.short = short
        self._jobs = jobs
        self._statements = statements
        self._database = database
        self._known: OrderedDict[int, Known] = OrderedDict()
        self._size = 0
        self._keep = Coalescer(self._flush, size=_size_of)

    async def read(self, run_id: int) -> Known:
        """Read the memos of a run, those that are new since this process read them last."""
        known = self._known.get(run_id) or Known()
        rows = await self._database.fetch(self._statements.memos(run_id, known.revision))
        self.forget(run_id)
        known.read(rows[0][0], [memo for _, memo in rows if memo is not None])
        self._known[run_id] = known
        self._size += known.size
        self._forget_oldest()
        return known

    def forget(self, run_id: int) -> None:
        """Drop what is in memory of a run."""
        known = self._known.pop(run_id, None)
        if known is not None:
            self._size -= known.size

    async def keep(self, write: MemoWrite) -> Memo | None:
        """Write a memo; return what is kept. None: the run is not held, and nothing was written."""
        return self._noted(write.run_id, await self._keep(write))

    async def senders(self) -> set[str]:
        """Return which transactions send events now."""
        (senders,) = await self._database.fetch(self._statements.senders())
        return set(senders or ())

    async def look_back(
        self, held: Held, key: StepKey, since: datetime | None, given: Sequence[str]
    ) -> Memo | None:
        """Settle a wait by an event that came since a time; None: the run is not held."""
        rows = await self._database.fetch(self._statements.look_back(held, key, since, given))
        return self._noted(held.run_id, rows[0].memo if rows else None)

    async def reopen(self, held: Held, key: StepKey) -> None:
        """Have a step that failed tried again."""
        await self._database.fetch(self._statements.reopen(held, key))

    async def send(self, write: Callable[[Sent], MemoWrite], event: Event) -> Memo | None:
        """Send an event and keep a memo, both or neither; None: the run is not held.

        Raises `EventError` for an event that can't be kept.
        """
        batch = [prepare(event, self._jobs)]

        def together() -> Calls[tuple[KeptRow, bool]]:
            # A try whose line broke may have been committed.
            told = yield from exchange(batch, self._statements, again=True)
            rows: list[KeptRow] = yield self._statements.remember_one(write(told.sent()[0]))
            if not rows:
                raise _NotHeldError
            return rows[0], told.wakes

        try:
            row, due = await self._database.transact(together)
        except _NotHeldError:
            return None
        if due:
            await self._database.fetch(self._statements.wake())
        return self._noted(row.run_id, row.memo)

    async def invoke(self, held: Held, call: StepCall, job_id: str, data: str) -> Memo | None:
        """Start a run of a job and keep a memo that waits for it. Raises `StepError` for no job."""
        job = self._jobs.get(job_id)
        if job is None:
            raise StepError(
                f"step `{call.key.name}` invokes job `{job_id}`, which this worker does not know;"
                f" {near_or_listed(job_id, self._jobs)}"
            )
        child = Child(job_id, new_id(), data, job.retries + 1, carried())
        invoking = self._statements.invoke(held, call, child)
        try:
            rows = await self._database.fetch(invoking)
        except UniqueViolation:
            # Its first try, whose line broke, has just been committed: what it kept is seen now.
            rows = await self._database.fetch(invoking)
        return self._noted(held.run_id, rows[0].memo if rows else None)

    def _noted(self, run_id: int, memo: Memo | None) -> Memo | None:
        known = self._known.get(run_id)
        if memo is not None and known is not None:
            self._size -= known.size
            known.add(memo)
            self._size += known.size
        return memo

    async def _flush(self, batch: Sequence[MemoWrite]) -> list[Memo | None]:
        alone = len(batch) == 1
        rows = await self._database.fetch(
            self._statements.remember_one(batch[0]) if alone else self._statements.remember(batch)
        )
        kept = {(row.run_id, row.memo.key): row.memo for row in rows}
        return [kept.get((one.run_id, StepKey(one.task, one.name, one.number))) for one in batch]

    def _forget_oldest(self) -> None:
        while self._size > _MAX_SIZE or len(self._known) > _MAX_RUNS:
            self.forget(next(iter(self._known)))


class _NotHeldError(Exception):
    """Undoes a transaction whose run is not held any more."""


def _size_of(write: MemoWrite) -> int:
    return len(write.result or "") + len(write.error or "")


def _size(memo: Memo | None) -> int:
    return 0 if memo is None else len(memo.result or "") + len(memo.error or "") + 200
