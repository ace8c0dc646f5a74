"""One pass: one entry into the handler of a run, until it ends or gives its slot back."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from jobspec_engine.branches import Branches
from jobspec_engine.errors import StepDrift, StepError, StepFailed
from jobspec_engine.look_back import AGAIN, looked_back
from jobspec_engine.memos import NO_MEMOS, Memos
from jobspec_engine.received import event_of
from jobspec_engine.step_arguments import require_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from jobspec_engine.events import Event, Sent
    from jobspec_engine.journal import Journal, Known
    from jobspec_engine.memos import Kind, Memo, StepCall
    from jobspec_engine.rows import Claimed, Held
    from jobspec_engine.step_statements import MemoWrite

# Turns of the event loop in which nothing may happen before a pass with parked steps is over: what
# waits for the first of several tasks takes a few to go on.
_IDLE_TURNS = 20

# A run that waits for nothing but the end of another is looked at all the same, now and then.
_LONGEST_WAIT = timedelta(hours=1)

_SWALLOWED = (
    "the handler caught `Suspended`, by which a step gives its slot back, and went on: catch"
    " `Exception` where it catches `BaseException`, and have nothing raised in a `finally`"
)


class PassEnded(BaseException):
    """Leaves a handler whose pass is over. A handler's `except Exception` does not catch it."""


class Suspended(PassEnded):
    """Leaves a handler that gives its slot back until a later time. Let it through."""


class LeaseLost(PassEnded):
    """Leaves a handler whose run somebody else may have."""


class SwallowedError(StepError):
    """A handler caught what leaves it to give its slot back."""


class Pass:
    """What the steps of one pass share: the memos of the run, and how the pass ends.

    A step is under way in a `with` block of it.

    A step that has to wait long parks. When all steps that a handler has under way are parked the
    pass is over: the handler is cancelled, so that what it awaits beside them, in a `gather` say,
    ends as well, and does not meet itself in the next pass.
    """

    # What a pass without steps leaves as it is.
    wake_at: datetime | None = None  # when to enter the handler again, once the pass was suspended
    _known: Known | None = None
    _memos = NO_MEMOS
    _at_work = 0
    _begun = 0  # how often a step was begun that is kept for good
    _over: BaseException | None = None

    def __init__(self, run: Claimed, held: Held, journal: Journal) -> None:
        self.event = event_of(run)
        self.held = held
        self.journal = journal
        self.branches = Branches()
        self._first = run.attempt == 1 and run.passes == 1
        self._reading = asyncio.Lock()
        self._parked: dict[asyncio.Future[None], datetime | None] = {}
        self._failed: dict[str, tuple[StepCall, int]] = {}

    def call(self, name: str, kind: Kind) -> StepCall:
        """Count a step that is called now. Raises `StepError` for one that can't be kept."""
        require_name(name)
        return self.branches.call(name, kind)

    def __enter__(self) -> None:
        """Hold the slot while a step is under way."""
        self._at_work += 1
        self._begun += 1

    def __exit__(self, *_: object) -> None:
        self._at_work -= 1
        self._suspend_when_idle()

    async def recall(self, call: StepCall) -> Memo | None:
        """Return the memo of a step; None: it is new.

        Raises `StepDrift` where the run has recorded another, `PassEnded` when the pass is over.
        """
        if self._over is not None:
            raise self._over
        if self._known is None:
            await self._read()
            self.require_going_on()
        try:
            memo = self._memos.take(call)
        except StepDrift as drift:
            self._over = drift
            raise
        if memo is None:
            self.require_going_on()
        return memo

    def require_going_on(self) -> None:
        """Raise what ended the pass, if it is over."""
        if self._over is None and not self.journal.holds(self.held):
            self._over = LeaseLost()
        if self._over is not None:
            raise self._over

    def has_memos(self) -> bool:
        """Tell whether the run has memos, once one was asked for."""
        return bool(self._memos)

    async def keep(self, write: MemoWrite) -> Memo:
        """Write a memo and return what is kept. Raises `LeaseLost` where nothing may be written."""
        return self._kept(await self.journal.keep(write))

    async def send(self, write: Callable[[Sent], MemoWrite], event: Event) -> Memo:
        """Send an event and keep its memo. Raises as `keep` does, and `EventError`."""
        return self._kept(await self.journal.send(write, event))

    async def invoke(self, call: StepCall, job_id: str, data: str) -> Memo:
        """Start a run and keep a memo that waits for it. Raises as `keep` does, and `StepError`."""
        return self._kept(await self.journal.invoke(self.held, call, job_id, data))

    def _kept(self, memo: Memo | None) -> Memo:
        if memo is None:
            self._over = LeaseLost()
            raise self._over
        return memo

    async def look_back(self, call: StepCall, memo: Memo) -> Memo:
        """Settle a begun wait by an event that came before it. Raises as `keep` does."""
        if self._known is None:
            raise AssertionError("a wait was begun, and its memo not asked for")
        return self._kept(await looked_back(self.journal, self._known, self.held, call, memo))

    async def park_wait(self, call: StepCall, wake_at: datetime) -> None:
        """Park until the time of a wait, or sooner where an event may be on its way. As `park`."""
        if self._known is None or call.key not in self._known.looked_back:
            wake_at = min(wake_at, self.time() + AGAIN)
        await self.park(wake_at)

    async def wait_until(self, wake_at: datetime) -> None:
        """Wait for a time: a short while here, a longer one with the slot given back."""
        seconds = self._seconds_until(wake_at)
        if seconds > self.journal.short.total_seconds():
            await self.park(wake_at)
        elif seconds > 0:
            await asyncio.sleep(seconds)
            self.require_going_on()

    def is_past(self, at: datetime) -> bool:
        """Tell whether a time has come."""
        return self._seconds_until(at) <= 0

    async def park(self, wake_at: datetime | None) -> None:
        """Wait to give the slot back, until a time or until somebody settles the step.

        Never returns: `Suspended` is raised, in other tasks than the handler's own
        `asyncio.CancelledError`.
        """
        self.require_going_on()
        parked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parked[parked] = wake_at
        self._at_work -= 1
        self._suspend_when_idle()
        try:
            await parked
        except asyncio.CancelledError:
            if self._over is not None and self.branches.in_own_task():
                raise self._over from None
            raise
        finally:
            self._at_work += 1
            del self._parked[parked]

    def failed(self, call: StepCall, error: StepFailed) -> StepFailed:
        """Note that a step failed for good, and return the error for the handler."""
        self._failed[error.step] = (call, self._begun)
        return error

    async def conclude(self, error: BaseException | None) -> BaseException | None:
        """End the pass, whose handler has ended with `error`; return what to end it with.

        A step whose failure left the handler is tried again by the next attempt, unless the handler
        called other steps on account of that failure.
        """
        over, self._over = self._over, PassEnded("the handler has ended")
        if isinstance(over, Suspended) and not _is_nothing_but(over, error):
            return SwallowedError(_SWALLOWED)
        if over is not None:
            return over
        if error is None:
            return await self._left_out()
        for call in self._to_try_again(error):
            await self.journal.reopen(self.held, call.key)
        return error

    async def _left_out(self) -> StepDrift | None:
        if self._known is None and self._first:
            return None  # there can't be any memo
        await self._read()
        try:
            self._memos.require_all_taken()
        except StepDrift as drift:
            return drift
        return None

    def _to_try_again(self, error: BaseException) -> Iterator[StepCall]:
        for cause in _chain(error):
            if isinstance(cause, StepFailed) and not cause.final and cause.step in self._failed:
                call, begun = self._failed[cause.step]
                if begun == self._begun:
                    yield call

    async def _read(self) -> None:
        """Read the memos of the run, once a pass."""
        if self._known is not None:
            return
        async with self._reading:
            if self._known is None:
                self._known = await self.journal.read(self.held.run_id)
                self._memos = Memos(self._known.memos)

    def time(self) -> datetime:
        """Tell the database's time, once a memo was asked for."""
        if self._known is None:
            raise AssertionError("times are asked for only when the memos have been read")
        return self._known.time()

    def _seconds_until(self, at: datetime) -> float:
        return (at - self.time()).total_seconds()

    def _suspend_when_idle(self) -> None:
        if self._parked:
            asyncio.get_running_loop().call_soon(self._still_idle, self._begun, _IDLE_TURNS)

    def _still_idle(self, begun: int, turns: int) -> None:
        """Suspend the pass after some turns of the event loop without a step at work."""
        if self._over is not None or not self._parked or self._at_work or begun != self._begun:
            return
        if turns:
            asyncio.get_running_loop().call_soon(self._still_idle, begun, turns - 1)
            return
        times = [at for at in self._parked.values() if at is not None]
        self.wake_at = min(times, default=self.time() + _LONGEST_WAIT)
        self._over = Suspended("it gives its slot back")
        self.branches.cancel()
        for parked in self._parked:
            parked.cancel()


def _is_nothing_but(over: BaseException, error: BaseException | None) -> bool:
    """Tell whether a handler let through what ended its pass, be it in a TaskGroup's group.

    A handler that awaits something else than a step is cancelled.
    """
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(_is_nothing_but(over, one) for one in group.exceptions)
    return error is over or isinstance(error, asyncio.CancelledError)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
