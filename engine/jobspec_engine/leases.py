"""Leases renewed from a thread and a connection of their own.

A handler that blocks the event loop, or a pool without a free connection, must not cost a run its
lease.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import psycopg

from jobspec_engine.database import connection_settings
from jobspec_engine.statements import Held, Statements, fetch

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from types import TracebackType
    from uuid import UUID

log = logging.getLogger(__name__)

# How often a lease is renewed in the time it holds: two renewals may fail before it runs out.
_RENEWALS = 3


@dataclass(slots=True)
class _Hold:
    lease_token: UUID
    renewed_at: float


class LeaseKeeper:
    """Renews the leases of the runs it is told of, and says which were lost.

    `on_lost` is called in the keeper's thread with the id of each run whose lease another worker
    took, or which could not be renewed in its time.
    """

    def __init__(
        self, dsn: str, statements: Statements, lease: timedelta, on_lost: Callable[[int], None]
    ) -> None:
        self._dsn = dsn
        self._statements = statements
        self._lease = lease
        self._on_lost = on_lost
        self._held: dict[int, _Hold] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="jobspec leases", daemon=True)
        self._connection: psycopg.Connection[Any] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def hold(self, run_id: int, lease_token: UUID) -> None:
        """Keep the lease of a run, which was claimed just now."""
        with self._lock:
            self._held[run_id] = _Hold(lease_token, time.monotonic())

    def drop(self, run_id: int) -> None:
        """Leave a run's lease alone: the run ended, or is somebody else's."""
        with self._lock:
            self._held.pop(run_id, None)

    def _keep(self) -> None:
        while not self._stop.wait(self._lease.total_seconds() / _RENEWALS):
            try:
                self._renew()
            except psycopg.OperationalError as error:
                log.warning("leases could not be renewed, trying again: %s", error)
                self._disconnect()
            self._give_up_expired()
        self._disconnect()

    def _renew(self) -> None:
        asked_at = time.monotonic()
        with self._lock:
            held = [Held(run_id, hold.lease_token) for run_id, hold in self._held.items()]
        if not held:
            return
        kept = set(fetch(self._connect(), self._statements.heartbeat(held, self._lease)))
        with self._lock:
            lost = [one.run_id for one in held if one.run_id not in kept and self._still(one)]
            for run_id in kept & self._held.keys():
                self._held[run_id].renewed_at = asked_at
        self._lose(lost, "another worker has it")

    def _still(self, held: Held) -> bool:
        """Tell whether a run is held yet; one that ended while it was asked about was not lost."""
        hold = self._held.get(held.run_id)
        return hold is not None and hold.lease_token == held.lease_token

    def _give_up_expired(self) -> None:
        limit = time.monotonic() - self._lease.total_seconds()
        with self._lock:
            expired = [run_id for run_id, hold in self._held.items() if hold.renewed_at < limit]
        self._lose(expired, "it could not be renewed in time")

    def _lose(self, run_ids: list[int], reason: str) -> None:
        for run_id in run_ids:
            log.warning("run %d: lease lost, %s", run_id, reason)
            self.drop(run_id)
            self._on_lost(run_id)

    def _connect(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            settings = connection_settings(self._dsn, "jobspec leases")
            self._connection = psycopg.connect(self._dsn, **settings)  # type: ignore[arg-type]
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
