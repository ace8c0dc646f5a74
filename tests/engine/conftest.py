"""A real Postgres for the engine's tests, and a fresh migrated database for each test.

The server is the bundled one in a temporary folder. `JOBSPEC_TEST_PG_BIN` names another server's
programs to start instead; `JOBSPEC_TEST_DSN` names a running server, on which databases are made
and dropped. Without any server the tests fail: they never skip.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import psycopg
import pytest

from databases import Clock, Databases
from jobspec_engine.embedded import EmbeddedPostgres
from jobspec_engine.migrate import migrate

# Nothing here outlives the run, so nothing needs to reach the disk.
THROW_AWAY = {"fsync": "off", "full_page_writes": "off", "max_connections": "200"}


@pytest.fixture(scope="session")
def server_dsn():
    """The address of a server on which tests may make databases."""
    if stated := os.environ.get("JOBSPEC_TEST_DSN"):
        yield stated
        return
    bin_dir = os.environ.get("JOBSPEC_TEST_PG_BIN")
    with tempfile.TemporaryDirectory(prefix="jobspec-tests-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        with EmbeddedPostgres(folder, THROW_AWAY, bin_dir) as server:
            yield server.dsn


@pytest.fixture(scope="session")
def databases(server_dsn):
    """Makes databases, and drops them at the end of the run."""
    with Databases(server_dsn) as made:
        yield made


@pytest.fixture(scope="session")
def template(databases):
    """The name of a migrated database that every other one is copied from."""
    name, dsn = databases.create()
    migrate(dsn)
    return name


@pytest.fixture
def dsn(databases, template):
    """A migrated and empty database for this test alone."""
    with databases.borrowed(template) as dsn:
        yield dsn


@pytest.fixture
def empty_dsn(databases):
    """A database of this test's own with nothing in it."""
    name, dsn = databases.create()
    yield dsn
    databases.drop(name)


@pytest.fixture
def connection(dsn):
    """A connection in autocommit to this test's database, which waits for no lock for long."""
    with psycopg.connect(dsn, autocommit=True, options="-c lock_timeout=20s") as connection:
        yield connection


@pytest.fixture
def clock(dsn):
    """The time of every session of this test's database, which stands still until it is moved."""
    with Clock(dsn) as clock:
        yield clock
