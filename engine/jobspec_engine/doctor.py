"""What may be wrong with a database that an engine runs on, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from jobspec_engine.calls import fetch
from jobspec_engine.database import connection_settings
from jobspec_engine.drift import drift
from jobspec_engine.errors import MigrationError
from jobspec_engine.migrate import pending
from jobspec_engine.operation_statements import OperationStatements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jobspec_engine.operation_statements import SessionRow, TableRow

OLDEST_SERVER = 14

# From when on something is a finding.
LATE = timedelta(minutes=5)
UNCLAIMED = timedelta(minutes=1)
IDLE = timedelta(minutes=1)
LONG = timedelta(minutes=10)
FAR = 1_000_000  # transactions
CLOCK_DIFFERENCE = timedelta(seconds=2)
DEAD_ROWS, DEAD_SHARE = 10_000, 0.2


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: that all is well, or `advice` on what is not."""

    check: str
    what: str
    advice: str | None = None

    @property
    def fine(self) -> bool:
        """Tell whether there is nothing to do."""
        return self.advice is None


def examine(dsn: str, schema: str = "jobspec") -> tuple[Finding, ...]:
    """Return what each check found, at least one finding a check.

    Changes nothing. A database that can't be reached, and a schema of another version, are findings
    that end the examination. Sessions of other roles are seen by members of `pg_monitor` only.
    """
    settings = connection_settings(dsn, "jobspec doctor")
    try:
        with psycopg.connect(dsn, **settings) as connection:  # type: ignore[arg-type]
            return tuple(_examine(connection, schema))
    except psycopg.OperationalError as error:
        advice = "start the server, or correct --dsn or JOBSPEC_DSN"
        return (Finding("connection", str(error).strip(), advice),)


def _examine(connection: psycopg.Connection[Any], schema: str) -> Iterator[Finding]:
    yield _server(connection)
    version = _version(connection, schema)
    yield version
    if not version.fine:
        return
    statements = OperationStatements(schema)
    yield from _or_fine("drift", "as the migrations make it", _drift(connection, schema))
    tables = fetch(connection, statements.tables())
    yield from _or_fine("indexes", "all valid", _indexes(tables, schema))
    yield from _or_fine("dead rows", "few", _dead_rows(tables, schema))
    sessions = fetch(connection, statements.sessions())
    yield from _or_fine("transactions", "none is long or idle", _sessions(sessions))
    before = datetime.now(UTC)
    health = fetch(connection, statements.health())[0]
    yield clocks(health.clock, before, datetime.now(UTC), health.set_now)
    yield _leases(health.expired_leases)
    yield from _or_fine("runs", "none waits for long", _due(health.due or ()))


def _or_fine(check: str, fine: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield findings, or one that says that there are none."""
    first = next(findings, None)
    yield first or Finding(check, fine)
    yield from findings


def _server(connection: psycopg.Connection[Any]) -> Finding:
    version = connection.info.server_version // 10_000
    advice = f"upgrade to {OLDEST_SERVER} or newer" if version < OLDEST_SERVER else None
    return Finding("connection", f"PostgreSQL {version}", advice)


def _version(connection: psycopg.Connection[Any], schema: str) -> Finding:
    try:
        missing = pending(connection, schema)
    except MigrationError as error:
        return Finding("version", str(error), "upgrade the code, or put the migration back")
    if missing:
        names = ", ".join(map(str, missing))
        what = f"schema {schema} lacks the migrations {names}"
        return Finding("version", what, f"jobspec migrate --schema {schema}")
    return Finding("version", f"schema {schema} is up to date")


def _drift(connection: psycopg.Connection[Any], schema: str) -> Iterator[Finding]:
    try:
        found = drift(connection, schema)
    except psycopg.errors.InsufficientPrivilege:
        yield Finding("drift", "not compared: this role may not create a schema to compare with")
        return
    for one in found:
        if "not valid)" not in (one.found or ""):  # indexes, which have a check of their own
            advice = "put it back as the migrations make it, or restore a dump"
            yield Finding("drift", str(one), advice)


def _indexes(tables: list[TableRow], schema: str) -> Iterator[Finding]:
    for table in tables:
        for index in table.invalid_indexes:
            what = f"index {index} of {table.name} is not valid: nothing reads it, or holds by it"
            name = sql.Identifier(schema, index).as_string()
            yield Finding("indexes", what, f"reindex index concurrently {name}")


def _dead_rows(tables: list[TableRow], schema: str) -> Iterator[Finding]:
    for table in tables:
        if table.dead > DEAD_ROWS and table.dead > DEAD_SHARE * table.living:
            what = f"table {table.name} has {table.dead} dead rows beside {table.living}"
            name = sql.Identifier(schema, table.name).as_string()
            yield Finding("dead rows", what, f"vacuum analyze {name}; see transactions, autovacuum")


def _sessions(sessions: list[SessionRow]) -> Iterator[Finding]:
    for one in sessions:
        age = timedelta(seconds=one.age or 0)
        if one.kind == "idle" and age > IDLE:
            what = f"{one.name} has been idle in a transaction for {_told(age)}"
            yield Finding(
                "transactions", what, "end it: it keeps its locks, and vacuum from dead rows"
            )
        elif one.kind in ("transaction", "prepared") and age > LONG:
            what = f"{one.name} has been open for {_told(age)}"
            yield Finding("transactions", what, "end it, or make it shorter: vacuum waits for it")
        elif one.kind == "slot" and (one.reach or 0) > FAR:
            what = f"{one.name} reaches {one.reach} transactions back"
            yield Finding("transactions", what, "let its reader catch up, or drop it")


def clocks(
    database: datetime, before: datetime, after: datetime, set_now: datetime | None
) -> Finding:
    """Compare the database's clock with this host's, read `before` and `after` it."""
    difference = max(before - database, database - after, timedelta(0))
    if set_now is not None:
        what = f"the engine's clock is set to {set_now}: it stands still"
        return Finding("clocks", what, "reset jobspec.now for the database and the role")
    if difference > CLOCK_DIFFERENCE:
        what = f"the clocks of this host and of the database differ by {_told(difference)}"
        return Finding("clocks", what, "keep both by NTP: times that are given are read by both")
    return Finding("clocks", "this host and the database agree")


def _leases(expired: int) -> Finding:
    if expired:
        leases = "1 lease" if expired == 1 else f"{expired} leases"
        runs = "its run" if expired == 1 else "their runs"
        what = f"{leases} ran out more than a minute ago, and nobody reclaimed {runs}"
        return Finding("leases", what, "start a worker: any one reclaims them")
    return Finding("leases", "none is stuck")


def _due(due: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    for one in due:
        age = timedelta(seconds=one["seconds"])
        runs = "1 run is" if one["runs"] == 1 else f"{one['runs']} runs are"
        what = f"{runs} due of job {one['job_id']}, the oldest for {_told(age)}"
        if one["paused"]:
            yield Finding("runs", f"{what}: the job is paused")
        elif not one["worked"] and age > UNCLAIMED:
            advice = "start a worker with the spec of this job, or cancel them"
            yield Finding("runs", f"{what}, and no worker claims them", advice)
        elif age > LATE:
            yield Finding("runs", what, "add workers, or raise --concurrency")


def _told(age: timedelta) -> str:
    return str(timedelta(seconds=round(age.total_seconds())))
