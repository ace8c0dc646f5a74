"""From what a person names on the command line to texts."""

from __future__ import annotations

import os
import sys
from errno import EBADF
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from jobspec.diagnostics import Diagnostic
from jobspec.load.findings import finding
from jobspec.load.limits import MAX_SIZE
from jobspec.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
STANDARD_INPUT = "<stdin>"
_SKIPPED = frozenset({"node_modules", "__pycache__"})


def read_sources(arguments: Sequence[str | Path]) -> Iterator[Source | Diagnostic]:
    """Yield the text of every file that `arguments` name, or what is wrong with it.

    An argument is a file of any name; a directory, searched recursively for `*.yaml`, `*.yml` and
    `*.json` in sorted order, without hidden files, hidden directories, `node_modules`,
    `__pycache__`, virtual environments, links to directories, and pipes; a glob, where `**` goes
    through directories; or `-`, standard input. A file named twice is read once. A byte order
    mark is dropped; line breaks stay as they are.
    """
    seen: set[str] = set()
    for argument in arguments:
        for found in _expanded(str(argument)):
            if isinstance(found, Diagnostic):
                yield found
            elif (identity := _identity(found)) not in seen:
                seen.add(identity)
                yield _read(found)


def _identity(name: str) -> str:
    try:
        return name if _is_no_path(name) else os.path.realpath(name)
    except FileNotFoundError:  # the working directory was deleted
        return name


def _is_no_path(name: str) -> bool:
    """Whether a name is standard input, or one that no file can have."""
    return name == "-" or "\0" in name


def _expanded(argument: str) -> Iterator[str | Diagnostic]:
    """Yield the names of the files of one argument."""
    if _is_no_path(argument) or not (_is_folder(argument) or has_magic(argument)):
        yield argument
        return
    # glob and not Path.glob: an argument may be absolute, and `**` must not enter hidden folders
    is_named = is_there(argument)
    matched = () if is_named else sorted(glob(argument, recursive=True))  # noqa: PTH207
    names = [argument] if is_named else [name for name in matched if not _is_endless(name)]
    found = [name for start in names for name in _files_of(start)]
    yield from found
    if not found:
        yield _problem(
            "JS167",
            argument,
            "no spec file is here",
            "name a file, or a directory with `.yaml`, `.yml` or `.json` files",
        )


def _files_of(start: str) -> Iterator[str | Diagnostic]:
    if not _is_folder(start):
        yield start
        return
    unreadable: list[OSError] = []
    for folder, folders, files in os.walk(start, onerror=unreadable.append):
        folders[:] = sorted(name for name in folders if _is_searched(Path(folder, name)))
        yield from (
            str(Path(folder, name))
            for name in sorted(files)
            if Path(name).suffix.lower() in SUFFIXES
            and not name.startswith(".")
            and not _is_endless(Path(folder, name))
        )
    yield from (_refused(str(problem.filename), problem) for problem in unreadable)


def is_there(name: str | Path) -> bool:
    """Tell whether a path exists; one that no file can have, such as one too long, does not."""
    return os.path.exists(name)  # noqa: PTH110 - Path.exists raises for a name that is too long


def _is_folder(name: str | Path) -> bool:
    return os.path.isdir(name)  # noqa: PTH112 - as above


def _is_endless(name: str | Path) -> bool:
    """Tell whether a path is a pipe, socket or device: nobody may ever write the end of one.

    A search passes over them. Where one is named itself, as by a shell's `<(...)`, it is read.
    """
    return is_there(name) and not Path(name).is_file() and not _is_folder(name)


def _is_searched(folder: Path) -> bool:
    is_hidden = folder.name.startswith(".") or folder.name in _SKIPPED
    return not is_hidden and not (folder / "pyvenv.cfg").exists()


def _read(name: str) -> Source | Diagnostic:
    try:
        data = _bytes_of(name)
    except (OSError, ValueError) as problem:  # ValueError: a U+0000 in the name
        return _refused(name, problem)
    if len(data) > MAX_SIZE:
        return _problem(
            "JS152", name, f"this file is larger than {MAX_SIZE:,} bytes", "split the file"
        )
    return _decoded(STANDARD_INPUT if name == "-" else name, data)


def _bytes_of(name: str) -> bytes:
    """Return what a file holds, at most one byte beyond the limit: `/dev/zero` has no end."""
    if name == "-":
        return stdin_bytes(MAX_SIZE + 1)
    with Path(name).open("rb") as file:
        return file.read(MAX_SIZE + 1)


def stdin_bytes(most: int = -1) -> bytes:
    """Return what standard input holds, at most so many bytes. Raises `OSError` if it is closed."""
    if sys.stdin is None:
        raise OSError(EBADF, "standard input is closed")
    return sys.stdin.buffer.read(most)


def _decoded(name: str, data: bytes) -> Source | Diagnostic:
    try:
        return Source(name, data.decode("utf-8").removeprefix("\ufeff"))
    except UnicodeDecodeError as problem:
        source = Source(name, data.decode("utf-8", errors="replace"))
        at = len(data[: problem.start].decode("utf-8"))
        message = f"byte {problem.start:,} of this file, 0x{data[problem.start]:02x}, is not UTF-8"
        return finding("JS151", message, source, Span(at, at + 1), "save the file as UTF-8")


def no_such_file(name: str, advice: str = "check the path") -> Diagnostic:
    """Return the finding of a file that was named and is not there."""
    return _problem("JS150", name, "there is no such file", advice)


def _near(name: str) -> str | None:
    """Return the path of a spec file in the same folder whose name is nearly this one."""
    from difflib import get_close_matches  # noqa: PLC0415  only needed where something is wrong

    folder = Path(name).parent
    try:
        there = [one.name for one in folder.iterdir() if one.suffix.lower() in SUFFIXES]
        there = [one for one in there if one.isprintable()]
    except OSError:
        return None
    found = get_close_matches(Path(name).name, there, n=1)
    return str(folder / found[0]) if found else None


def _refused(name: str, problem: Exception) -> Diagnostic:
    if isinstance(problem, FileNotFoundError):
        near = _near(name)
        return no_such_file(name, f"did you mean `{near}`?") if near else no_such_file(name)
    if isinstance(problem, PermissionError):
        return _problem("JS150", name, "this file may not be read", "check its permissions")
    if isinstance(problem, OSError) and problem.strerror:
        return _problem(
            "JS150", name, f"this file can't be read: {problem.strerror.lower()}", "check the path"
        )
    return _problem("JS150", name, "no file can have this name", "check the path")


def _problem(code: str, name: str, message: str, advice: str) -> Diagnostic:
    return finding(code, message, Source(name, ""), Span(0, 0), advice)
