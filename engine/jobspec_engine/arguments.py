"""Arguments that a type checker would refuse, refused by name also where none was asked."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from jobspec import CompiledJobs

if TYPE_CHECKING:
    from collections.abc import Iterable


def require_compiled(jobs: object) -> None:
    """Raise `TypeError` for anything but compiled jobs, such as the path of a spec."""
    if not isinstance(jobs, CompiledJobs):
        given = repr(jobs) if isinstance(jobs, str) else "…"
        raise TypeError(
            f"jobs must be compiled, not of type {type(jobs).__name__}:"
            f" pass jobspec.compile({given})"
        )


def require_known(function: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Raise `TypeError` for a keyword that a function does not take, with the one that was meant.

    A function whose keywords are a `TypedDict` is told of others, and would let them be.
    """
    names = sorted(known)
    for name in options:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            advice = f"did you mean {near[0]}?" if near else f"it takes {', '.join(names)}"
            raise TypeError(f"{function}() takes no keyword {name}: {advice}")
