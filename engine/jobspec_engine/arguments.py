"""Arguments that a type checker would refuse, refused by name also where none was asked."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from jobspec import CompiledJobs
from jobspec_engine.errors import ArgumentError
from jobspec_engine.nearness import did_you_mean, near_or_listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# What Postgres has for the number of a run.
_RUN_IDS = range(1, 1 << 63)

# The longest that anything is put off, kept or looked back at.
LONGEST = timedelta(days=36_500)


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
            advice = did_you_mean(name, names) or f"it takes {', '.join(names)}"
            raise TypeError(f"{function}() takes no keyword {name}: {advice}")


def unknown_job(job_id: str, jobs: Collection[str]) -> str:
    """Return that a job is not among the compiled ones, and which was meant or there are."""
    return f"there is no job `{job_id}` among the compiled jobs; {near_or_listed(job_id, jobs)}"


def seconds_of(name: str, length: object) -> float:
    """Return the seconds of a length of time. Raises `TypeError` for anything but a `timedelta`."""
    if not isinstance(length, timedelta):
        raise TypeError(
            f"{name} must be a timedelta, not {type(length).__name__}: timedelta(seconds=…)"
        )
    return length.total_seconds()


def require_length(
    name: str, length: object, *, error: type[ValueError] = ArgumentError
) -> timedelta:
    """Return a length of time, of none to 36,500 days.

    Raises `error`, which calls it by its `name`, for anything else.
    """
    if not isinstance(length, timedelta):
        raise error(f"{name} must be a timedelta, not {type(length).__name__}")
    if length < timedelta(0):
        raise error(f"{name} must not be negative")
    if length > LONGEST:
        raise error(f"{name} must be no longer than {LONGEST.days:,} days")
    return length


def require_text(
    name: str,
    value: object,
    *,
    max_bytes: int | None = None,
    error: type[ValueError] = ArgumentError,
) -> str:
    """Return a text that Postgres can hold, of 1 to `max_bytes` bytes of UTF-8 if that is given.

    Raises `error`, which calls it by its `name`, for anything else.
    """
    if not isinstance(value, str):
        raise error(f"{name} must be text, not {type(value).__name__}")
    if "\0" in value:
        raise error(f"{name} holds U+0000, which Postgres can't keep in text")
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise error(f"{name} holds half a surrogate pair, which is not text")
    if max_bytes is not None and not 1 <= (size := len(value.encode())) <= max_bytes:
        raise error(f"{name} must have 1 to {max_bytes} bytes, this has {size}")
    return value


def possible_runs(run_ids: Iterable[object]) -> list[int]:
    """Return those of the numbers that a run can have; raise `ArgumentError` for what is none."""
    return [one for one in map(_whole, run_ids) if one in _RUN_IDS]


def _whole(run_id: object) -> int:
    if not isinstance(run_id, int) or isinstance(run_id, bool):
        raise ArgumentError(f"a run's id must be a whole number, not {type(run_id).__name__}")
    return run_id
