"""What a worker does beside running runs: reclaims, ticks, a place in the register, pruning."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from psycopg import OperationalError

from jobspec_engine.cron import Crons
from jobspec_engine.retention import prune
from jobspec_engine.upkeep_statements import UpkeepStatements

if TYPE_CHECKING:
    from jobspec import CompiledJobs
    from jobspec_engine.persistence import Persistence
    from jobspec_engine.retention import Retention
    from jobspec_engine.run_log import RunLog

log = logging.getLogger(__name__)

# How many runs one reclaim makes ready; the next follows at once while there are more.
_RECLAIM_BATCH = 500

# Seconds between two signs of life in the register of workers.
_SHOW_EVERY = 10.0

# Seconds between two times that a worker prunes.
_PRUNE_EVERY = 600.0


class Upkeep:
    """The upkeep of one worker. Its statements are tried again while there is no database."""

    def __init__(
        self,
        jobs: CompiledJobs,
        schema: str,
        database: Persistence,
        run_log: RunLog,
        name: str,
        max_refunds: int,
        retention: Retention | None,
    ) -> None:
        self._database = database
        self._statements = UpkeepStatements(schema)
        self._crons = Crons(jobs, self._statements)
        self._job_ids = tuple(jobs)
        self._log = run_log
        self._name = name
        self._max_refunds = max_refunds
        self._worker_id = uuid4()
        self._shown_at: float | None = None
        self._retention = retention

    async def reclaim(self) -> int:
        """Make runs ready again whose lease ran out, whoever held them; tell how many."""
        reclaim = self._statements.reclaim(self._max_refunds, _RECLAIM_BATCH)
        reclaimed, total = _RECLAIM_BATCH, 0
        while reclaimed == _RECLAIM_BATCH:
            runs = await self._database.fetch(reclaim)
            for run in runs:
                what = f"its worker is gone, now {run.state}"
                self._log.of(run.run_id, logging.WARNING, what)
            reclaimed = len(runs)
            total += reclaimed
        return total

    async def tick(self) -> bool:
        """Send the cron ticks that are due; tell whether there were any."""
        if not self._crons:
            return False
        keys = await self._database.drive(self._crons.watch())
        return bool(keys) and await self._database.transact(lambda: self._crons.tick(keys)) > 0

    async def show(self) -> None:
        """Let everybody see that this worker is at work, now and then."""
        at = time.monotonic()
        if self._shown_at is None or at - self._shown_at >= _SHOW_EVERY:
            self._shown_at = at  # who is cancelled before the answer may be seen already
            await self._database.fetch(
                self._statements.see_worker(self._worker_id, self._name, self._job_ids)
            )

    async def leave(self) -> None:
        """Let nobody see this worker any more, where the database can be reached."""
        if self._shown_at is not None:
            with suppress(OperationalError):  # it is forgotten after a while
                await self._database.fetch_once(self._statements.forget_worker(self._worker_id))

    async def prune_loop(self) -> None:
        """Delete what is old, time and again, where this worker is to do so."""
        while self._retention is not None:
            pruned = await self._database.drive(prune(self._retention, self._statements))
            log.info("%s", pruned)
            await asyncio.sleep(_PRUNE_EVERY)
