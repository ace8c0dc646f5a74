"""Spec files as they were at a git revision, named `REVISION:PATH` as `git show` has it."""

from __future__ import annotations

import posixpath
import subprocess
from functools import partial
from pathlib import PurePosixPath

from jobspec.load import SUFFIXES, is_there
from jobspec.source import Source


class GitError(ValueError):
    """A revision or a path that git does not have. The message is git's own, in one line."""


def is_at_revision(name: str) -> bool:
    """Tell whether a spec names a path at a revision, rather than a path or a module."""
    revision, colon, path = name.partition(":")
    return bool(colon and path and not is_there(name) and is_revision(revision))


def require_repository() -> None:
    """Raise `GitError` where the working directory is in no repository, or git is missing."""
    try:
        _git("rev-parse", "--git-dir")
    except GitError as error:
        if "not a git repository" not in str(error):
            raise
        raise GitError("this folder is in no git repository, so it has no revisions") from error


def is_revision(name: str) -> bool:
    """Tell whether git knows a revision."""
    return bool(name) and _succeeds(
        "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}"
    )


def exists(name: str) -> bool:
    """Tell whether there is such a path at such a revision."""
    return _succeeds("cat-file", "-e", name)


def _succeeds(*arguments: str) -> bool:
    try:
        _git(*arguments)
    except GitError:
        return False
    return True


def sources_at(name: str) -> tuple[Source, ...]:
    """Return the spec files of `REVISION:PATH`: a file of any name, or those of a directory.

    The path starts at the top of the repository, or in the working directory if it begins with
    `./`. Raises `GitError` where there is no such thing.
    """
    revision, _, path = name.partition(":")
    if _git("cat-file", "-t", name).strip() == "blob":
        return (_source(name),)
    names = _git("ls-tree", "-r", "-z", "--full-tree", "--name-only", name).split("\0")
    return tuple(_source(f"{revision}:{_joined(path, one)}") for one in names if _is_spec(one))


def _is_spec(name: str) -> bool:
    path = PurePosixPath(name)
    hidden = any(part.startswith(".") or part == "node_modules" for part in path.parts)
    return path.suffix.lower() in SUFFIXES and not hidden


def _source(name: str) -> Source:
    text = _git("cat-file", "blob", name).removeprefix("\ufeff")
    return Source(name, text, beside=partial(_beside, name))


def _beside(name: str, written: str) -> Source | None:
    """Return the file of the same revision that a file of it names, if there is one."""
    revision, _, path = name.partition(":")
    found = f"{revision}:{_joined(posixpath.dirname(path), written)}"
    return _source(found) if exists(found) else None


def _joined(folder: str, name: str) -> str:
    """Return the path of a file in a folder, as git has it; `./` in front stays what it means."""
    path = posixpath.normpath(posixpath.join(folder, name))
    return f"./{path}" if folder.partition("/")[0] in (".", "..") else path


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603  git, with a revision and a path that git itself judges
            ["git", *arguments],  # noqa: S607  the git that the person uses
            capture_output=True,
            check=True,
        )
        return done.stdout.decode("utf-8")
    except FileNotFoundError as error:
        raise GitError("git is not installed") from error
    except UnicodeDecodeError as error:
        raise GitError(f"`{arguments[-1]}` is not UTF-8") from error
    except subprocess.CalledProcessError as error:
        message: str = error.stderr.decode("utf-8", errors="replace").strip()
        raise GitError(message.splitlines()[0] if message else "git refuses that") from error
