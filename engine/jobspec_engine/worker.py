"""The loop that runs runs: claim, run, record, stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVarTuple
from uuid import uuid4

from jobspec_engine import telemetry
from jobspec_engine.arguments import seconds_of
from jobspec_engine.attempt import Handlers, attempt
from jobspec_engine.cancellation import cancelled, lost_cancellation_check
from jobspec_engine.entry import Entry
from jobspec_engine.failure import failed_words
from jobspec_engine.handlers import load_handlers
from jobspec_engine.job_sets import merged
from jobspec_engine.journal import SHORT, Journal
from jobspec_engine.leases import LeaseKeeper
from jobspec_engine.persistence import Persistence
from jobspec_engine.pools import Migrated
from jobspec_engine.recorder import Recorder
from jobspec_engine.rows import Completion, Failure, Held, Suspension
from jobspec_engine.run_log import RunLog
from jobspec_engine.slots import Room, Slots
from jobspec_engine.statements import MOST_CLAIMED
from jobspec_engine.step_statements import StepStatements
from jobspec_engine.target import require_supported
from jobspec_engine.upkeep import Upkeep
from jobspec_engine.wakeup import CANCEL, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence

    from jobspec import CompiledJobs
    from jobspec_engine.retention import Retention
    from jobspec_engine.rows import Ended

log = logging.getLogger(__name__)

Told = TypeVarTuple("Told")

# Seconds between two claims that found nothing: a due run that a sender holds locked is not taken.
_SHORTEST_WAIT = 0.01


class Worker:
    """Runs the runs of some jobs, at most `concurrency` at a time.

    `jobs` may be several sets of them. `limits` are for single jobs: how many of its runs this
    worker holds at once, by job id.

    A run is held under a `lease` that is renewed while its handler runs; when this process dies,
    another worker makes the run ready again once the lease has run out, within one `poll`. The
    attempt is given back `max_refunds` times, and used up after that, so that a run which kills its
    workers ends. A step that sleeps no longer than `short` keeps the slot. With a `retention` the
    worker deletes what is older every ten minutes.

    Raises `HandlerError` for a handler that can't be imported, `UnsupportedOptionError` for an
    option that the engine can't honour, `WorkerError` for two jobs of one id and for a limit that
    can't be meant.
    """

    def __init__(
        self,
        jobs: CompiledJobs | Sequence[CompiledJobs],
        dsn: str,
        *,
        schema: str = "jobspec",
        concurrency: int = 100,
        limits: Mapping[str, int] | None = None,
        lease: timedelta = timedelta(seconds=30),
        poll: timedelta = timedelta(seconds=1),
        max_refunds: int = 5,
        short: timedelta = SHORT,
        retention: Retention | None = None,
        name: str | None = None,
    ) -> None:
        jobs = merged(jobs)
        require_supported(jobs)
        for option, length in (("lease", lease), ("poll", poll), ("short", short)):
            seconds_of(option, length)
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._job_ids = tuple(jobs)
        self._handlers = Handlers(
            load_handlers(jobs), ThreadPoolExecutor(concurrency, "jobspec handler")
        )
        self._dsn = dsn
        self._statements = StepStatements(schema)
        self._slots = Slots(self._job_ids, concurrency, limits or {})
        self._lease = lease
        self._poll = poll
        self._database = Persistence(dsn, lease.total_seconds())
        self._log = RunLog(log, self.name)
        self._upkeep = Upkeep(
            jobs, schema, self._database, self._log, self.name, max_refunds, retention
        )
        self._recorder = Recorder(self._statements, self._database, self._recorded)
        self._keeper = LeaseKeeper(
            dsn, self._statements, lease, self._soon(self._lose), self._soon(self._cancel)
        )
        self._journal = Journal(jobs, self._statements, self._database, self._keeper.holds, short)
        self._entries: dict[Entry, asyncio.Task[None]] = {}
        self._sated: tuple[str, ...] = ()  # the jobs of which nothing more was due
        self._nudge = asyncio.Event()
        self._context = copy_context()
        self._traced = telemetry.wanted()
        self._until_idle = False
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, *, until_idle: bool = False) -> None:
        """Run runs until `stop` is called and the running ones have ended. Once a worker.

        With `until_idle` return as soon as no run is due and none is running: for tests and demos.
        """
        self._loop = asyncio.get_running_loop()
        self._until_idle = until_idle
        self._context = copy_context()
        try:
            with Migrated(self._statements.schema), self._keeper:
                async with self._database, self._recorder:
                    await self._work()
        finally:
            self._handlers.threads.shutdown(wait=False)

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping

    def stop(self, *, now: bool = False) -> None:
        """Claim nothing more, and let the running runs end; with `now` give them back instead.

        A run that is given back is ready at once, its attempt not used up. A sync handler can't be
        interrupted: it goes on in its thread, and what it returns is not recorded.
        """
        self._stopping = True
        self._nudge.set()
        self._give_back_waiting(everything=True)
        if now:
            self._database.give_up()
            for entry in self._entries:
                entry.leave()

    async def _work(self) -> None:
        require_none_lost = lost_cancellation_check()
        try:
            await self._upkeep.reclaim()
            await self._upkeep.tick()
            if not self._until_idle:
                await self._upkeep.show()  # before it sleeps: senders wake workers that they see
            async with asyncio.TaskGroup() as group:
                background = [] if self._until_idle else self._background()
                helpers = [group.create_task(helper) for helper in background]
                await self._claim_loop(require_none_lost)
                await self._attempts_ended()
                await cancelled(helpers)
            await self._upkeep.leave()
        except BaseException:
            self.stop(now=True)
            await self._attempts_ended()
            await self._upkeep.leave()
            raise

    def _background(self) -> list[Coroutine[Any, Any, None]]:
        return [self._upkeep_loop(), self._listen_loop(), self._upkeep.prune_loop()]

    async def _attempts_ended(self) -> None:
        while self._entries:
            await asyncio.wait(self._entries.values())

    async def _claim_loop(self, require_none_lost: Callable[[], None]) -> None:
        while not self._stopping:
            require_none_lost()
            self._nudge.clear()
            busy = self._slots.held or not self._recorder.idle
            claimed = await self._claim()
            if not claimed and not busy and self._until_idle:
                return
            if claimed:
                await asyncio.sleep(0)  # handlers are entered before anything else is asked
            if not self._nudge.is_set():
                waits = [await self._until_next_due()] if self._polls() else []
                require_none_lost()
                await self._nudged_within(min((*waits, *self._slots.patience()), default=None))
            self._give_back_waiting()

    def _polls(self) -> bool:
        return bool(self._sated) and not self._until_idle

    async def _claim(self) -> int:
        """Claim as many runs as there is room for; return how many that were."""
        self._sated = ()  # what ends meanwhile leaves room that nobody has asked for yet
        claimed, sated = 0, list[str]()
        for room in () if self._recorder.full else self._slots.rooms():
            got = await self._claim_some(room) if room.runs else 0
            sated += room.job_ids if got < room.runs else ()
            claimed += got
            if got == MOST_CLAIMED:
                self._nudge.set()  # there may be room for more than one claim takes
        self._sated = tuple(sated)
        return claimed

    async def _claim_some(self, room: Room) -> int:
        lease_token = uuid4()
        asked_at = time.monotonic()
        claimed = await self._database.fetch(
            self._statements.claim(room.job_ids, room.runs, self._lease, lease_token, self.name)
        )
        self._traced = telemetry.wanted()
        entries = [Entry(run, Held(run.run_id, lease_token)) for run in claimed]
        self._keeper.hold([one.held for one in entries], asked_at)
        for entry in entries:
            if self._stopping:
                self._recorder.record(Suspension(*entry.held, entered=False))
            elif self._slots.take(entry):
                self._start(entry)
        return len(entries)

    def _start(self, entry: Entry) -> None:
        entry.began = time.monotonic()
        # By its class: one that the loop makes takes half as long again. In a context of its own,
        # and not in that of the run whose slot it takes.
        entry.task = asyncio.Task(
            self._enter(entry),
            loop=self._loop,
            name=entry.run.job_id,
            context=self._context.copy(),
        )
        self._entries[entry] = entry.task

    async def _enter(self, entry: Entry) -> None:
        """Make a pass, hand in how it ended, and give its slot to the next run."""
        entry.entered = True
        try:
            if entry.left:
                self._recorder.record(Suspension(*entry.held, entered=False))
            else:
                self._hand_in(entry, await self._attempt(entry))
        except asyncio.CancelledError:
            self._recorder.record(Suspension(*entry.held))
        except Exception:
            words = "run %d: its pass broke; its lease will run out"
            log.exception(words, entry.run.run_id, extra=self._log.fields(entry.run))
            self._let_go(entry.held)
        finally:
            self._free(entry)

    def _attempt(self, entry: Entry) -> Coroutine[Any, Any, Ended | None]:
        if self._traced:
            make = partial(attempt, entry, self._handlers, self._journal)
            return telemetry.traced(entry.run, make)
        return attempt(entry, self._handlers, self._journal)

    def _free(self, entry: Entry) -> None:
        del self._entries[entry]
        next_one = self._slots.end(entry.run.job_id, time.monotonic() - entry.began)
        if next_one is not None:
            self._start(next_one)
        if entry.run.job_id not in self._sated:
            self._nudge.set()

    def _hand_in(self, entry: Entry, ended: Ended | None) -> None:
        if ended is None:
            self._log_lost(entry.run.run_id)
            self._let_go(entry.held)
            return
        if isinstance(ended, Failure):
            self._log.of_attempt(entry.run, logging.WARNING, failed_words(ended))
        elif isinstance(ended, Completion):
            self._log.of_attempt(entry.run, logging.DEBUG, "completed")
        if not isinstance(ended, Suspension):
            self._journal.forget(ended.run_id)
        self._recorder.record(ended)

    def _let_go(self, held: Held) -> None:
        """Let the lease of a run that has no end to record run out, and look for others."""
        self._keeper.drop([held])
        self._nudge.set()

    def _recorded(self, ended: Sequence[Ended], kept: Collection[int]) -> None:
        """Let the leases of runs go whose ends were recorded, or could not be."""
        self._keeper.drop(Held(one.run_id, one.lease_token) for one in ended)
        for one in ended:
            if one.run_id not in kept:
                self._log_lost(one.run_id)
        if self._may_have_more(ended[0]):
            self._nudge.set()

    def _may_have_more(self, ended: Ended) -> bool:
        """Tell whether to look for runs at once, now that such an end was recorded.

        What is completed makes room, and nothing due but runs that waited for it: those are woken
        as by a sender, for which nobody listens who works until there is nothing to do.
        """
        return self._until_idle or not self._sated or not isinstance(ended, Completion)

    def _log_lost(self, run_id: int) -> None:
        what = "lease lost before its end; nothing was recorded"
        self._log.of(run_id, logging.WARNING, what)

    def _give_back_waiting(self, *, everything: bool = False) -> None:
        """Give back at once what was claimed ahead and will not start soon, its attempt unused."""
        for waiting in self._slots.give_up(everything=everything):
            self._recorder.record(Suspension(*waiting.held, entered=False))

    def _soon(self, react: Callable[[*Told], None]) -> Callable[[*Told], None]:
        """Return what takes the keeper's word, in its thread, to the event loop."""

        def told(*words: *Told) -> None:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(react, *words)

        return told

    def _cancel(self, asked: Sequence[Held]) -> None:
        """End passes whose runs were asked to end: giving those back makes them `cancelled`."""
        for entry in self._leave(asked):
            what = "asked to end, its pass is cancelled"
            self._log.of(entry.run.run_id, logging.INFO, what)
        for waiting in self._slots.withdraw(set(asked)):
            self._recorder.record(Suspension(*waiting.held, entered=False))

    def _lose(self, lost: Sequence[Held], reason: str) -> None:
        """End passes whose runs somebody else may have: this worker itself, under newer leases.

        One that has ended meanwhile, its end recorded before the keeper looked, lost nothing.
        """
        for entry in self._leave(lost):
            what = f"is ended: its lease was lost, {reason}"
            self._log.of_attempt(entry.run, logging.WARNING, what)
        self._slots.withdraw(set(lost))

    def _leave(self, held: Sequence[Held]) -> list[Entry]:
        """End passes; return those that are not ending yet."""
        those = set(held)
        return [one for one in self._entries if one.held in those and one.leave()]

    async def _upkeep_loop(self) -> None:
        """Be seen, reclaim, and send cron ticks, once a poll."""
        while True:
            await asyncio.sleep(self._poll.total_seconds())
            await self._upkeep.show()
            if await self._upkeep.reclaim() + await self._upkeep.tick():
                self._nudge.set()

    async def _listen_loop(self) -> None:
        await self._database.retrying()(
            listen, self._dsn, self._statements.channel, self._woken, self._knock
        )

    async def _knock(self) -> None:
        await self._database.fetch(self._statements.wake())

    def _woken(self, told: str) -> None:
        self._nudge.set()
        if told == CANCEL:
            self._keeper.renew_now()

    async def _until_next_due(self) -> float:
        """Return how many seconds to wait for a wake-up, for the jobs that have room."""
        due = (await self._database.fetch(self._statements.next_due(self._sated)))[0]
        poll = self._poll.total_seconds()
        return poll if due is None else min(max(due, _SHORTEST_WAIT), poll)

    async def _nudged_within(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._nudge.wait()
