"""A real Postgres for the engine's tests, and a fresh migrated database for each test.

They are the fixtures that users get, under shorter names. The server is the bundled one in a
temporary folder. `JOBSPEC_TEST_PG_BIN` names another server's programs to start instead;
`JOBSPEC_TEST_DSN` names a running server, on which databases are made and dropped. Without any
server the tests fail: they never skip.
"""

from __future__ import annotations

import psycopg
import pytest

from jobspec_engine import batch
from jobspec_engine.testing.plugin import (
    jobspec_clock,
    jobspec_databases,
    jobspec_dsn,
    jobspec_server,
    jobspec_template,
    rehearse,
)

__all__ = [
    "clock",
    "connection",
    "databases",
    "dsn",
    "each_send",
    "empty_dsn",
    "jobspec_clock",
    "jobspec_databases",
    "jobspec_dsn",
    "jobspec_server",
    "jobspec_template",
    "on_this_database",
    "rehearse",
    "server_dsn",
    "template",
]


@pytest.fixture(scope="session")
def server_dsn(jobspec_server):
    """The address of a server on which tests may make databases."""
    return jobspec_server


@pytest.fixture(scope="session")
def databases(jobspec_databases):
    """Makes databases, and drops them at the end of the run."""
    return jobspec_databases


@pytest.fixture(scope="session")
def template(jobspec_template):
    """The name of a migrated database that every other one is copied from."""
    return jobspec_template


@pytest.fixture
def dsn(jobspec_dsn):
    """A migrated and empty database for this test alone."""
    return jobspec_dsn


@pytest.fixture
def clock(jobspec_clock):
    """The time of every session of this test's database, which stands still until it is moved."""
    return jobspec_clock


@pytest.fixture(params=["smallest", "general"])
def each_send(request, monkeypatch):
    """Send by the smallest statement that does, and by the one that does for any run, alike."""
    if request.param == "general":
        for smaller in ("is_plain", "is_idempotent", "is_debounced"):
            monkeypatch.setattr(batch, smaller, lambda _: False)


@pytest.fixture
def empty_dsn(databases):
    """A database of this test's own with nothing in it."""
    name, dsn = databases.create()
    yield dsn
    databases.drop(name)


@pytest.fixture
def connection(dsn):
    """A connection in autocommit to this test's database."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def on_this_database(dsn, monkeypatch):
    """Has commands work on this test's database."""
    monkeypatch.setenv("JOBSPEC_DSN", dsn)
