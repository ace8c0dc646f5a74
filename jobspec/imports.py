"""The user's own code, imported by name: only ever where somebody asked for it."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType


class NotImportedError(ValueError):
    """A name that nothing can be imported by. The message says why, in one line."""


def imported(name: str) -> Any:
    """Return what a `module:name` names. Raises `NotImportedError` where nothing does."""
    module_name, _, path = name.partition(":")
    found: Any = imported_module(module_name)
    for part in path.split("."):
        if not hasattr(found, part):
            raise NotImportedError(f"`{module_name}` has no `{path}`")
        found = getattr(found, part)
    return found


def imported_module(name: str) -> ModuleType:
    """Return a module. Raises `NotImportedError` where it can't be imported."""
    here = str(Path.cwd())
    sys.path.insert(0, here)  # as `python -m` does
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise NotImportedError(f"there is no module `{error.name}`") from error
        raise NotImportedError(_failed(name, error)) from error
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        raise NotImportedError(_failed(name, error)) from error
    finally:
        sys.path.remove(here)


def _failed(name: str, error: BaseException) -> str:
    return f"`{name}` was found, but importing it fails: {told(error)}"


def told(error: BaseException) -> str:
    """Return an error of somebody else's code in one line."""
    lines = str(error).splitlines() or [""]
    shown = "".join(char if char.isprintable() else " " for char in lines[0])
    return f"{type(error).__name__}: {shown}"
