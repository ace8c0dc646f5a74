"""Fixtures for pytest: `pytest_plugins = ["jobspec_engine.testing.plugin"]` in conftest.py."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from jobspec_engine.migrate import migrate
from jobspec_engine.testing.databases import Clock, Databases, throw_away_server
from jobspec_engine.testing.rehearsal import Rehearsal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jobspec import CompiledJobs


@pytest.fixture(scope="session")
def jobspec_server() -> Iterator[str]:
    """Give a server to make databases on: that of JOBSPEC_TEST_DSN, or a bundled Postgres.

    JOBSPEC_TEST_PG_BIN names the folder of another server's programs to start instead.
    """
    with ExitStack() as at_the_end:
        stated = os.environ.get("JOBSPEC_TEST_DSN")
        bin_dir = os.environ.get("JOBSPEC_TEST_PG_BIN")
        yield stated or at_the_end.enter_context(throw_away_server(bin_dir))


@pytest.fixture(scope="session")
def jobspec_databases(jobspec_server: str) -> Iterator[Databases]:
    """Give what makes databases, and drops them at the end of the run."""
    with Databases(jobspec_server) as made:
        yield made


@pytest.fixture(scope="session")
def jobspec_template(jobspec_databases: Databases) -> str:
    """Give the name of a migrated database that every other one is copied from."""
    name, dsn = jobspec_databases.create()
    migrate(dsn)
    return name


@pytest.fixture
def jobspec_dsn(jobspec_databases: Databases, jobspec_template: str) -> Iterator[str]:
    """Give a migrated and empty database for this test alone."""
    with jobspec_databases.borrowed(jobspec_template) as dsn:
        yield dsn


@pytest.fixture
def jobspec_clock(jobspec_dsn: str) -> Iterator[Clock]:
    """Give the clock of this test's database, which stands still until it is moved."""
    with Clock(jobspec_dsn) as clock:
        yield clock


@pytest.fixture
def rehearse(
    jobspec_dsn: str, jobspec_clock: Clock
) -> Iterator[Callable[[CompiledJobs], Rehearsal]]:
    """Give what makes a `Rehearsal` of compiled jobs, on this test's database and clock."""
    with ExitStack() as at_the_end:
        yield lambda jobs: at_the_end.enter_context(Rehearsal(jobs, jobspec_dsn, jobspec_clock))
