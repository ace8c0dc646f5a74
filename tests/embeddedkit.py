"""Bundled servers on data of a test's own, and their processes."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg

from jobspec_engine.datadir import DataDir
from jobspec_engine.embedded import EmbeddedPostgres

BIN_DIR = os.environ.get("JOBSPEC_TEST_PG_BIN")
THROW_AWAY = {"fsync": "off", "full_page_writes": "off"}


@contextmanager
def data_folder():
    """Give a folder for the data of a server, which is stopped if a failed test left it running."""
    with tempfile.TemporaryDirectory(prefix="jobspec-data-") as made:
        Path(made).chmod(0o755)
        yield Path(made)
        stop_leftover(Path(made))


def stop_leftover(folder):
    """Stop what a failed test has left running."""
    if pid := server_pid(folder):
        psutil.Process(pid).terminate()
        psutil.wait_procs([psutil.Process(pid)], timeout=30)


def embedded(folder, settings=THROW_AWAY, bin_dir=BIN_DIR):
    return EmbeddedPostgres(folder, settings, bin_dir)


def server_pid(folder):
    """Return the process id of the running server of a data directory, if there is one."""
    cluster = DataDir(folder).cluster
    for process in psutil.process_iter(["cmdline"]):
        if f"data_directory={cluster}" in (process.info["cmdline"] or []):
            return process.pid
    return None


def ask(dsn, query):
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(query).fetchone()[0]


def run(dsn, statement):
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)
