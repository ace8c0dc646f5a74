"""The server process of one data directory: making its database, starting it, stopping it."""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import psutil

from jobspec_engine.datadir import DataDir, make_private, unusable
from jobspec_engine.errors import EmbeddedPostgresError

if TYPE_CHECKING:
    import pwd
    from collections.abc import Mapping

SUPERUSER = "postgres"
PORT = 5432  # only a part of the socket's file name: no TCP port is opened
LOG_LINES_SHOWN = 20
INITDB_TIMEOUT = 120  # seconds
START_TIMEOUT = 120  # seconds; recovery after a crash is part of a start
STOP_TIMEOUT = 60  # seconds

# The room for a socket's path in the kernel's `sockaddr_un`, less the closing NUL.
SOCKET_PATH_LIMIT = 103 if sys.platform == "darwin" else 107


@dataclass(frozen=True)
class Server:
    """The server of one data directory. Every method needs the directory's lock."""

    data_dir: DataDir
    account: pwd.struct_passwd | None
    programs: Path

    def ensure_running(self, settings: Mapping[str, str]) -> str:
        """Adopt the running server or start one; return its address."""
        if (running := self._running()) and not running.ready:
            self.stop()  # half started or half stopped by a process that died over it
            running = None
        if running is None:
            self._initialise(settings)
            self._start(settings)
            running = self._running()
        if running is None:
            raise self._failed("the bundled Postgres ended right after its start")
        return running.address

    def stop(self) -> None:
        """Stop the server: open transactions are rolled back, the data is written out."""
        if self._running():
            self._run(
                "pg_ctl", "stop", f"--pgdata={self.data_dir.cluster.name}", "--mode=fast",
                "--wait", f"--timeout={STOP_TIMEOUT}", timeout=STOP_TIMEOUT + 10,
            )  # fmt: skip
            short = _short_socket_dir(self.data_dir, self.account)
            if short.exists():
                short.rmdir()

    def _running(self) -> Postmaster | None:
        return Postmaster.running(self.data_dir.cluster)

    def _initialise(self, settings: Mapping[str, str]) -> None:
        """Make the database unless there is one: beside its place first, as this may be killed."""
        for leftover in self.data_dir.server.glob("unfinished-*"):
            # Its maker may have left a process behind that still writes: a later start clears it.
            shutil.rmtree(leftover, ignore_errors=True)
        if self.data_dir.cluster.exists():
            self._check_version()
            return
        unfinished = self.data_dir.server / f"unfinished-{secrets.token_hex(4)}"
        unsafe = ["--no-sync"] if settings.get("fsync") == "off" else []
        self._run(
            "initdb", f"--pgdata={unfinished.name}", f"--username={SUPERUSER}", "--auth=trust",
            "--encoding=UTF8", "--locale=C", "--no-instructions", *unsafe, timeout=INITDB_TIMEOUT,
        )  # fmt: skip
        unfinished.rename(self.data_dir.cluster)

    def _check_version(self) -> None:
        made_by = (self.data_dir.cluster / "PG_VERSION").read_text(encoding="ascii").strip()
        ours = self._run("postgres", "--version", timeout=30).split()[2].partition(".")[0]
        if made_by != ours:
            raise EmbeddedPostgresError(
                f"the database in {self.data_dir.cluster} was made by Postgres {made_by}, which"
                f" Postgres {ours} can not read: set JOBSPEC_DATA_DIR to a new folder, or move the"
                f" data over with pg_dumpall of Postgres {made_by}"
            )

    def _start(self, settings: Mapping[str, str]) -> None:
        Postmaster.forget_impostor(self.data_dir.cluster)
        if self.data_dir.log.exists():
            self.data_dir.log.replace(self.data_dir.log.with_name("log.old"))
        try:
            self._run(
                "pg_ctl", "start", f"--pgdata={self.data_dir.cluster.name}",
                f"--log={self.data_dir.log.name}",
                "--options", self._options(settings),
                "--wait", f"--timeout={START_TIMEOUT}", timeout=START_TIMEOUT + 10,
            )  # fmt: skip
        except EmbeddedPostgresError as error:
            raise self._failed(str(error)) from error

    def _options(self, settings: Mapping[str, str]) -> str:
        socket_dir = str(_socket_dir(self.data_dir, self.account)).replace('"', '""')
        fixed = {
            "data_directory": str(self.data_dir.cluster),  # what `Postmaster.serves` looks for
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": f'"{socket_dir}"',
            "unix_socket_permissions": "0700",
        }
        return shlex.join(
            word
            for name, value in {**settings, **fixed}.items()
            for word in ("-c", f"{name}={value}")
        )

    def _run(self, program: str, *arguments: str, timeout: float) -> str:
        """Run a program of the server's as its account and return what it printed."""
        command = [str(self.programs / program), *arguments]
        try:
            done = self._finish(command, timeout)
        except subprocess.TimeoutExpired:
            raise EmbeddedPostgresError(f"{program} took longer than {timeout:g} s") from None
        except OSError as error:
            raise EmbeddedPostgresError(f"{program} did not start: {error}") from error
        if done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip()
            raise EmbeddedPostgresError(f"{program} failed: {said}")
        return done.stdout

    def _finish(self, command: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
        account = self.account
        return subprocess.run(  # noqa: S603 - the server's own programs, no shell
            command,
            capture_output=True,
            check=False,
            # Its paths are given from here: pg_ctl pastes them into a shell command, where a `"`
            # or a `$` in them would mean something.
            cwd=self.data_dir.server,
            # The caller's PGPORT, PGDATA and their kin mean another database.
            env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
            extra_groups=[] if account else None,
            group=account.pw_gid if account else None,
            text=True,
            timeout=timeout,
            user=account.pw_uid if account else None,
        )

    def _failed(self, what: str) -> EmbeddedPostgresError:
        log = self.data_dir.log
        lines = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        tail = "\n".join(lines.splitlines()[-LOG_LINES_SHOWN:])
        return EmbeddedPostgresError(f"{what}\nThe end of {log}:\n{tail}")


@dataclass(frozen=True)
class Postmaster:
    """What a server writes about itself into `postmaster.pid`."""

    pid: int
    socket_dir: Path
    ready: bool

    @classmethod
    def read(cls, cluster: Path) -> Postmaster | None:
        """Return what the file says; none where it is missing or not yet whole."""
        path = cluster / "postmaster.pid"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if len(lines) < 5:  # the fifth names the socket's folder
            return None
        return cls(int(lines[0]), Path(lines[4]), ready=lines[-1].strip() == "ready")

    @classmethod
    def running(cls, cluster: Path) -> Postmaster | None:
        """Return the server of a cluster that is alive, if one is."""
        found = cls.read(cluster)
        return found if found and found.serves(cluster) else None

    @property
    def address(self) -> str:
        """The `postgresql://` address of the server.

        The folder is a parameter, since SQLAlchemy and others read no folder in the host's place.
        """
        parameters = urlencode({"host": self.socket_dir, "port": PORT}, quote_via=quote)
        return f"postgresql://{SUPERUSER}@/{SUPERUSER}?{parameters}"

    @classmethod
    def forget_impostor(cls, cluster: Path) -> None:
        """Remove the file of a dead server whose process id another program has now.

        Postgres does not look what the process is: in a container, where ids repeat, it would
        refuse to start.
        """
        found = cls.read(cluster)
        if found and psutil.pid_exists(found.pid) and not found.serves(cluster):
            (cluster / "postmaster.pid").unlink()

    def serves(self, cluster: Path) -> bool:
        """Tell whether the process is alive and is the server of this cluster."""
        try:
            command = psutil.Process(self.pid).cmdline()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False
        return f"data_directory={cluster}" in command


def _socket_dir(data_dir: DataDir, account: pwd.struct_passwd | None) -> Path:
    """Return the folder of the socket: beside the data, or a private short one where that can't be.

    A path may be too long for the kernel, and the client library splits a host at its commas.
    """
    longest = data_dir.server / f".s.PGSQL.{PORT}"
    if len(os.fsencode(longest)) <= SOCKET_PATH_LIMIT and "," not in str(longest):
        return data_dir.server
    folder = _short_socket_dir(data_dir, account)
    try:
        make_private(folder, account)
    except OSError as error:
        raise unusable(folder, error) from error
    return folder


def _short_socket_dir(data_dir: DataDir, account: pwd.struct_passwd | None) -> Path:
    owner = account.pw_uid if account else os.geteuid()
    name = hashlib.sha256(os.fsencode(data_dir.path)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"jobspec-{owner}-{name}"
