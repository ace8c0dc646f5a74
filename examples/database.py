"""The database that the examples run on."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from jobspec_engine import EmbeddedPostgres
from jobspec_engine.migrate import migrate

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def database() -> Generator[str]:
    """Give the DSN of a migrated database: `JOBSPEC_DSN`, or that of the bundled Postgres."""
    with ExitStack() as opened:
        dsn = os.environ.get("JOBSPEC_DSN") or opened.enter_context(EmbeddedPostgres()).dsn
        migrate(dsn)
        yield dsn
