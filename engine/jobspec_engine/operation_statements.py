"""The statements of those who look after an engine: figures, events, health."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from jobspec_engine.statements import Statements
from jobspec_engine.stats import LIMIT, Figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jobspec_engine.calls import Call


class EventRow(NamedTuple):
    """An event, and what became of it for each job: `job`, `outcome`, `run` and its `state`."""

    event_id: str
    name: str
    received_at: datetime
    ts: int
    data: str
    jobs: Sequence[Mapping[str, Any]]


class HealthRow(NamedTuple):
    """What one look at a schema tells."""

    set_now: datetime | None
    clock: datetime
    expired_leases: int
    # By job, the longest due first: `job_id`, `runs`, `seconds`, `paused`, `worked`.
    due: Sequence[Mapping[str, Any]] | None


class SessionRow(NamedTuple):
    """What keeps vacuum or others waiting. `age` in seconds; `reach` in transactions."""

    kind: Literal["idle", "transaction", "prepared", "slot"]
    name: str
    age: float | None
    reach: int | None


class TableRow(NamedTuple):
    """A table, its living and dead rows, and those of its indexes that are not valid."""

    name: str
    living: int
    dead: int
    invalid_indexes: Sequence[str]


class OperationStatements(Statements):
    """The statements of those who look after an engine, for the tables of one schema."""

    def events(
        self, name: str | None, since: datetime | timedelta | None, limit: int
    ) -> Call[EventRow]:
        """List the events that were received last: of a name, since a time or within a period."""
        within = isinstance(since, timedelta)
        return self._call(
            "events",
            EventRow._make,
            name=name,
            since=None if within else since,
            within=since if within else None,
            limit=limit,
        )

    def stats(self, limit: int = LIMIT) -> Call[Figure]:
        """Return figures, sorted by metric; of each sort of rows at most `limit` are counted."""
        return self._call("stats", Figure._make, limit=limit, schema=self.schema)

    def health(self) -> Call[HealthRow]:
        """Return one row about runs and clocks."""
        return self._call("health", HealthRow._make)

    def sessions(self) -> Call[SessionRow]:
        """Return what keeps vacuum or others waiting, in this database."""
        return self._call("sessions", SessionRow._make)

    def tables(self) -> Call[TableRow]:
        """Return the state of each table."""
        return self._call("tables", TableRow._make, schema=self.schema)
