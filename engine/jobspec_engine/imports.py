"""What specs name by `module:name`, imported."""

from __future__ import annotations

import importlib
from typing import Any

from jobspec_engine.errors import HandlerError


def import_named(name: str, what: str) -> Any:
    """Return what `name`, a `module:name`, stands for; `what` says in messages what it is to be.

    Raises `HandlerError` when it can't be imported or isn't there.
    """
    module_name, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise HandlerError(
            f"{what} `{name}` needs the module `{error.name}`, which is not there: install it, or"
            " start the worker in the folder it is in"
        ) from error
    except Exception as error:
        raise HandlerError(
            f"importing `{module_name}` of {what} `{name}` raised {type(error).__name__}: {error}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise HandlerError(
                f"`{module_name}` has no `{path}`, which the job names as its {what}"
            )
        found = getattr(found, part)
    return found
