"""Leases renewed from a thread and a connection of their own.

A handler that blocks the event loop, or a pool without a free connection, must not cost a run its
lease.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import psycopg

from jobspec_engine.calls import fetch
from jobspec_engine.database import (
    answered_within_in_thread,
    connection_settings,
    hang_up,
    set_up_session,
)
from jobspec_engine.rows import Held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import timedelta
    from types import TracebackType

    from jobspec_engine.statements import Statements

log = logging.getLogger(__name__)

# How often a lease is renewed in the time it holds: two renewals may fail before it runs out.
_RENEWALS = 3


class LeaseKeeper:
    """Renews the leases of the runs it is told of, and says which were lost.

    `on_lost` is called in the keeper's thread with the runs whose leases another worker took, or
    which could not be renewed in their time, and the words for it; `on_cancel` with those that were
    asked to end, at every renewal. A run whose end was recorded in just that moment counts as lost,
    too: only the worker knows.
    """

    def __init__(
        self,
        dsn: str,
        statements: Statements,
        lease: timedelta,
        on_lost: Callable[[Sequence[Held], str], None],
        on_cancel: Callable[[Sequence[Held]], None],
    ) -> None:
        self._dsn = dsn
        self._statements = statements
        self._lease = lease
        self._interval = lease.total_seconds() / _RENEWALS
        self._on_lost = on_lost
        self._on_cancel = on_cancel
        self._renewed_at: dict[Held, float] = {}
        self._lock = threading.Lock()
        self._stopped = False
        self._now = threading.Event()
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
        self._stopped = True
        self._now.set()
        self._thread.join()

    def hold(self, held: Iterable[Held], since: float) -> None:
        """Keep the leases of runs; they were claimed no sooner than `since`, in monotonic time."""
        with self._lock:
            self._renewed_at.update(dict.fromkeys(held, since))

    def holds(self, held: Held) -> bool:
        """Tell whether a lease can't have run out, even if this process was frozen meanwhile."""
        renewed_at = self._renewed_at.get(held)  # one step of the interpreter: no lock is needed
        return (
            renewed_at is not None and time.monotonic() - renewed_at < self._lease.total_seconds()
        )

    def drop(self, held: Iterable[Held]) -> None:
        """Leave the leases of runs alone: they ended, or are somebody else's."""
        with self._lock:
            for one in held:
                self._renewed_at.pop(one, None)

    def renew_now(self) -> None:
        """Renew all leases at once: a run may have been asked to end."""
        self._now.set()

    def _keep(self) -> None:
        while not self._stopped_after(self._interval):
            try:
                self._renew()
            except psycopg.Error as error:
                log.warning("leases could not be renewed, trying again: %s", error)
                self._disconnect()
            self._give_up_expired()
        self._disconnect()

    def _stopped_after(self, seconds: float) -> bool:
        self._now.wait(seconds)
        self._now.clear()
        return self._stopped

    def _renew(self) -> None:
        asked_at = time.monotonic()
        with self._lock:
            asked = list(self._renewed_at)
        if not asked:
            return
        connection = self._connect()
        with answered_within_in_thread(self._interval, partial(hang_up, connection)):
            renewed = fetch(connection, self._statements.heartbeat(asked, self._lease))
        kept = {Held(one.run_id, one.lease_token): one for one in renewed}
        with self._lock:
            held = [one for one in asked if one in self._renewed_at]  # others have ended meanwhile
            extended = [one for one in held if one in kept and kept[one].extended]
            self._renewed_at.update((one, asked_at) for one in extended)
        self._lose([one for one in held if one not in kept], "another worker has it")
        if asked_to_end := [one for one in held if one in kept and kept[one].cancel_requested]:
            self._on_cancel(asked_to_end)

    def _give_up_expired(self) -> None:
        limit = time.monotonic() - self._lease.total_seconds()
        with self._lock:
            expired = [held for held, at in self._renewed_at.items() if at < limit]
        self._lose(expired, "it could not be renewed in time")

    def _lose(self, lost: list[Held], reason: str) -> None:
        if lost:
            self.drop(lost)
            self._on_lost(lost, reason)

    def _connect(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            settings = connection_settings(self._dsn, "jobspec leases")
            if settings.get("connect_timeout"):  # there is no time for ten seconds of a short lease
                settings["connect_timeout"] = max(2, int(min(10, self._interval)))
            self._connection = psycopg.connect(self._dsn, **settings)  # type: ignore[arg-type]
            set_up_session(self._connection)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
