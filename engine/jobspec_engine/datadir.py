"""The data directory of the bundled Postgres: what lies where, and whose it is."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobspec_engine.errors import EmbeddedPostgresError

if TYPE_CHECKING:
    from pathlib import Path

SERVER_ACCOUNT = "nobody"  # whom root's server runs as


@dataclass(frozen=True)
class DataDir:
    """The places in a data directory."""

    path: Path

    @property
    def lock(self) -> Path:
        """Held while a process starts or stops the server."""
        return self.path / "postgres.lock"

    @property
    def users(self) -> Path:
        """Held, shared, by each process for as long as it uses the server."""
        return self.path / "postgres.users"

    def programs(self, version: str) -> Path:
        """Return the copy of the programs, made only where root's own are out of reach."""
        return self.path / f"programs-{version}"

    @property
    def server(self) -> Path:
        """What belongs to the server's account; the socket is here too."""
        return self.path / "postgres"

    @property
    def cluster(self) -> Path:
        """The database itself."""
        return self.server / "cluster"

    @property
    def log(self) -> Path:
        """What the server of the latest start said; `log.old`: of the start before."""
        return self.server / "log"


def server_account() -> pwd.struct_passwd | None:
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


def make_data_dir(data_dir: DataDir, account: pwd.struct_passwd | None) -> None:
    """Make the folders, or raise `EmbeddedPostgresError` where that or using them can't be.

    Only `postgres/` belongs to the server's account: it can plant no link where root writes.
    """
    try:
        data_dir.path.mkdir(mode=0o755 if account else 0o700, parents=True, exist_ok=True)
        make_private(data_dir.server, account)
    except OSError as error:
        raise unusable(data_dir.path, error) from error
    if account and (closed := closed_to(account, data_dir.server)):
        raise EmbeddedPostgresError(
            f"{data_dir.path} is out of reach for the user `{account.pw_name}`, whom Postgres runs"
            f" as when the caller is root: {closed} is closed; set JOBSPEC_DATA_DIR to another"
            " folder"
        )


def make_private(folder: Path, account: pwd.struct_passwd | None) -> None:
    """Make a folder for the server's account alone; an `OSError` where it is another's already."""
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


def unusable(path: Path, error: OSError) -> EmbeddedPostgresError:
    """Return the error for a path that the system refuses."""
    return EmbeddedPostgresError(
        f"can not use {path} ({error.strerror or error}); set JOBSPEC_DATA_DIR to another folder"
    )


def closed_to(account: pwd.struct_passwd, path: Path) -> Path | None:
    """Return the first part of the path, from the root down, that the account may not enter."""
    real = path.resolve()
    for part in (*reversed(real.parents), real):
        found = part.stat()
        shift = 6 if found.st_uid == account.pw_uid else 3 if found.st_gid == account.pw_gid else 0
        if not found.st_mode >> shift & 0o1:
            return part
    return None
