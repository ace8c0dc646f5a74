"""The real PgBouncer. Without it a test is skipped; where `CI` is set it fails."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from enginekit import until

CONFIG = """\
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
pool_mode = {mode}
auth_type = any
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
default_pool_size = 3
server_idle_timeout = 1
server_login_retry = 1
"""


def program():
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if found is None:
        no_pgbouncer = pytest.fail if os.environ.get("CI") else pytest.skip
        no_pgbouncer("PgBouncer is not installed: apt-get install pgbouncer")
    return found


@contextmanager
def pgbouncer(dsn, mode, own_port=None):
    """Start a PgBouncer in front of a server; give the address through it."""
    command, target = program(), conninfo_to_dict(dsn)
    with tempfile.TemporaryDirectory(prefix="jobspec-pgbouncer-") as folder:
        Path(folder).chmod(0o755)
        own_port = own_port or free_port()
        config = Path(folder, "pgbouncer.ini")
        config.write_text(CONFIG.format(mode=mode, own_port=own_port, **target))
        account = {"user": "nobody"} if os.geteuid() == 0 else {}  # it refuses to run as root
        with subprocess.Popen([command, "-q", config], stderr=subprocess.DEVNULL, **account) as own:
            through = make_conninfo(**target | {"host": "127.0.0.1", "port": own_port})
            try:
                until(lambda: answers(through), "PgBouncer")
                yield through
            finally:
                own.terminate()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as own:
        return own.getsockname()[1]


def answers(dsn):
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True
