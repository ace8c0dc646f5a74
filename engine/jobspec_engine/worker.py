"""The loop that runs runs: claim, run, record, reclaim, stop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from psycopg import OperationalError

from jobspec_engine.attempt import Handlers, attempt
from jobspec_engine.batch import exchange
from jobspec_engine.coalesce import Coalescer
from jobspec_engine.cron import has_cron, prepare_tick, ticks_between
from jobspec_engine.handlers import load_handlers
from jobspec_engine.journal import SHORT, Journal
from jobspec_engine.leases import LeaseKeeper
from jobspec_engine.persistence import Persistence
from jobspec_engine.rows import Claimed, Completion, Failure, Held, Suspension
from jobspec_engine.step_statements import StepStatements
from jobspec_engine.target import require_supported
from jobspec_engine.wakeup import CANCEL, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jobspec import CompiledJobs

log = logging.getLogger(__name__)

# Seconds between two claims that found nothing: a due run that a sender holds locked is not taken.
_SHORTEST_WAIT = 0.01

# How many runs one reclaim makes ready; the next follows at once while there are more.
_RECLAIM_BATCH = 500


class Worker:
    """Runs the runs of some jobs, at most `concurrency` at a time.

    A run is held under a `lease` that is renewed while its handler runs; when this process dies,
    another worker makes the run ready again once the lease has run out, within one `poll`. The
    attempt is given back `max_refunds` times, and used up after that, so that a run which kills its
    workers ends. A step that sleeps no longer than `short` keeps the slot.

    Raises `HandlerError` for a handler that can't be imported, `UnsupportedOptionError` for an
    option that the engine can't honour.
    """

    def __init__(
        self,
        jobs: CompiledJobs,
        dsn: str,
        *,
        schema: str = "jobspec",
        concurrency: int = 100,
        lease: timedelta = timedelta(seconds=30),
        poll: timedelta = timedelta(seconds=1),
        max_refunds: int = 5,
        short: timedelta = SHORT,
        name: str | None = None,
    ) -> None:
        require_supported(jobs)
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._jobs = jobs
        self._job_ids = tuple(jobs)
        self._has_cron = has_cron(jobs)
        self._handlers = Handlers(
            load_handlers(jobs), ThreadPoolExecutor(concurrency, "jobspec handler")
        )
        self._dsn = dsn
        self._statements = StepStatements(schema)
        self._concurrency = concurrency
        self._lease = lease
        self._poll = poll
        self._max_refunds = max_refunds
        self._database = Persistence(dsn, lease.total_seconds())
        self._complete = Coalescer(self._flush_completions)
        self._fail = Coalescer(self._flush_failures)
        self._suspend = Coalescer(self._flush_suspensions)
        self._release = Coalescer(self._flush_releases)
        self._keeper = LeaseKeeper(
            dsn, self._statements, lease, self._soon(self._lose), self._soon(self._cancel)
        )
        self._journal = Journal(jobs, self._statements, self._database, self._keeper.holds, short)
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_handler: dict[Held, asyncio.Task[None]] = {}
        self._lost: set[Held] = set()
        self._nudge = asyncio.Event()
        self._stopping = False
        self._hurried = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, *, until_idle: bool = False) -> None:
        """Run runs until `stop` is called and the running ones have ended. Once a worker.

        With `until_idle` return as soon as no run is due and none is running: for tests and demos.
        """
        self._loop = asyncio.get_running_loop()
        try:
            async with self._database, asyncio.TaskGroup() as group:
                with self._keeper:
                    await self._work(group, until_idle=until_idle)
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
        if now:
            self._hurried = True
            self._database.give_up()
            for task in self._in_handler.values():
                task.cancel()

    async def _work(self, group: asyncio.TaskGroup, *, until_idle: bool) -> None:
        await self._reclaim()
        background = [] if until_idle else [self._upkeep_loop(), self._listen_loop()]
        helpers = [group.create_task(helper) for helper in background]
        await self._claim_loop(group, until_idle=until_idle)
        while self._tasks:
            await asyncio.wait(self._tasks)
        for helper in helpers:
            helper.cancel()

    async def _claim_loop(self, group: asyncio.TaskGroup, *, until_idle: bool) -> None:
        while not self._stopping:
            self._nudge.clear()
            free = self._concurrency - len(self._tasks)
            claimed = await self._claim(group, free) if free else 0
            if until_idle and not claimed and not self._tasks:
                return
            if claimed == free or until_idle:
                await self._nudge.wait()  # for a slot
            else:
                await self._nudged_within(await self._until_next_due())

    async def _claim(self, group: asyncio.TaskGroup, limit: int) -> int:
        """Claim runs and start their attempts; return how many."""
        lease_token = uuid4()
        asked_at = time.monotonic()
        claimed = await self._database.fetch(
            self._statements.claim(self._job_ids, limit, self._lease, lease_token, self.name)
        )
        for run in claimed:
            held = Held(run.run_id, lease_token)
            self._keeper.hold(held, asked_at)
            task = group.create_task(self._run(run, held))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        return len(claimed)

    async def _run(self, run: Claimed, held: Held) -> None:
        """Take one run from its claim to what is recorded of it."""
        try:
            if self._hurried:
                await self._give_back(held)
                return
            ended = await self._attempt(run, held)
            recorded = ended is not None and await self._record(ended)
        finally:
            self._keeper.drop(held)
        if not recorded:
            log.warning("run %d: lease lost before its end; nothing was recorded", run.run_id)

    async def _attempt(
        self, run: Claimed, held: Held
    ) -> Completion | Failure | Suspension | None:
        """Let an attempt end; when it is cancelled give its run back, unless the lease was lost."""
        # It can be cancelled from here on: a task that has not begun would not give its run back.
        self._in_handler[held] = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            return await attempt(run, held, self._handlers, self._journal)
        except asyncio.CancelledError:
            if held not in self._lost:
                await self._give_back(held)
            raise
        finally:
            del self._in_handler[held]
            self._lost.discard(held)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._nudge.set()

    async def _record(self, ended: Completion | Failure | Suspension) -> bool:
        """Record how a pass ended; return whether the run was still held."""
        if isinstance(ended, Suspension):
            return await self._suspend(ended)
        self._journal.forget(ended.run_id)
        if isinstance(ended, Completion):
            return await self._complete(ended)
        log.warning("run %d: attempt failed: %s", ended.run_id, ended.message)
        return await self._fail(ended)

    async def _flush_completions(self, batch: Sequence[Completion]) -> list[bool]:
        kept = set(await self._database.fetch(self._statements.complete(batch)))
        return [one.run_id in kept for one in batch]

    async def _flush_failures(self, batch: Sequence[Failure]) -> list[bool]:
        kept = set(await self._database.fetch(self._statements.fail(batch)))
        return [one.run_id in kept for one in batch]

    async def _flush_suspensions(self, batch: Sequence[Suspension]) -> list[bool]:
        kept = await self._database.fetch(self._statements.suspend(batch))
        return [Held(one.run_id, one.lease_token) in kept for one in batch]

    async def _flush_releases(self, batch: Sequence[Held]) -> list[None]:
        await self._database.fetch_once(self._statements.release(batch))
        return [None] * len(batch)

    async def _give_back(self, held: Held) -> None:
        try:
            await self._release(held)
        except OperationalError as error:
            log.warning("run %d: not given back, its lease will run out: %s", held.run_id, error)

    def _soon(self, react: Callable[[Held], None]) -> Callable[[Held], None]:
        """Return what takes the keeper's word, in its thread, to the event loop."""

        def told(held: Held) -> None:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(react, held)

        return told

    def _cancel(self, held: Held) -> None:
        """End a pass whose run was asked to end: giving it back makes it `cancelled`."""
        task = self._in_handler.get(held)
        if task is not None and not task.cancelling():
            task.cancel()

    def _lose(self, held: Held) -> None:
        """End a pass whose run somebody else may have: this worker itself, under a newer lease."""
        task = self._in_handler.get(held)
        if task is not None:
            self._lost.add(held)
            task.cancel()

    async def _upkeep_loop(self) -> None:
        """Reclaim, and send cron ticks, once a poll."""
        ticked = await self._now() if self._has_cron else None
        while True:
            await asyncio.sleep(self._poll.total_seconds())
            await self._reclaim()
            if ticked is not None:
                ticked = await self._send_ticks(ticked)

    async def _send_ticks(self, after: datetime) -> datetime:
        """Send the cron ticks since `after`; return until when."""
        until = await self._now()
        batch = [prepare_tick(tick) for tick in ticks_between(self._jobs, after, until)]
        if batch:
            await self._database.transact(lambda: exchange(batch, self._statements))
            self._nudge.set()
        return until

    async def _now(self) -> datetime:
        return (await self._database.fetch(self._statements.now()))[0]

    async def _reclaim(self) -> None:
        """Make runs ready again whose lease ran out, whoever held them."""
        more = True
        while more:
            reclaimed = await self._database.fetch(
                self._statements.reclaim(self._max_refunds, _RECLAIM_BATCH)
            )
            for run in reclaimed:
                log.warning("run %d: its worker is gone, now %s", run.run_id, run.state)
                self._nudge.set()
            more = len(reclaimed) == _RECLAIM_BATCH

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
        """Return how long to wait for a wake-up, in seconds."""
        due = (await self._database.fetch(self._statements.next_due(self._job_ids)))[0]
        poll = self._poll.total_seconds()
        return poll if due is None else min(max(due, _SHORTEST_WAIT), poll)

    async def _nudged_within(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._nudge.wait()
