"""Runs that start without an event: checked here, written by a function that plain SQL has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypedDict

from jobspec_engine.arguments import require_known, require_length, require_text, unknown_job
from jobspec_engine.errors import AddJobError
from jobspec_engine.events import Dispatched
from jobspec_engine.payload import encode, is_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jobspec import CompiledJobs
    from jobspec_engine.calls import Call
    from jobspec_engine.rows import AddedRow
    from jobspec_engine.statements import Statements

# What the event of such a run is called: see 0001_init.sql.
EVENT_NAME = "jobspec/job.added"

JobKeyMode = Literal["replace", "debounce", "preserve_run_at", "unsafe_dedupe"]

MODES: tuple[JobKeyMode, ...] = ("replace", "debounce", "preserve_run_at", "unsafe_dedupe")
_PRIORITIES = range(-(1 << 15), 1 << 15)
_MOST_ATTEMPTS = 1000

# What a run's time may be, as its table has it too.
_EARLIEST, _LATEST = datetime(1000, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


class AddJobOptions(TypedDict, total=False):
    """How a run is added.

    Without `run_at` (aware) or `delay` it is due at once. Of runs that are due, those with the
    smallest `priority` are claimed first. `max_attempts` is that of the job if it is not given.

    With a `job_key` the call joins the run of the job with this key that is pending and was never
    claimed, if there is one; `job_key_mode` says what it does to it:

    | mode | payload | `run_at` |
    |---|---|---|
    | `replace` (default) | replaced | replaced |
    | `debounce` | replaced | put off, never past the first call + `max_debounce` |
    | `preserve_run_at` | replaced | stays |
    | `unsafe_dedupe` | stays | stays |
    """

    job_key: str | None
    job_key_mode: JobKeyMode
    run_at: datetime | None
    delay: timedelta | None
    max_debounce: timedelta | None
    priority: int
    max_attempts: int | None


def add_job(
    statements: Statements,
    jobs: CompiledJobs,
    job_id: str,
    payload: Mapping[str, object] | None,
    options: AddJobOptions,
    *,
    wake: bool,
) -> Call[AddedRow]:
    """Return the statement that adds a run.

    Raises `AddJobError` for what can't be added, `TypeError` for an unknown option.
    """
    require_known("add_job", options, AddJobOptions.__annotations__)
    if job_id not in jobs:
        raise AddJobError(unknown_job(job_id, jobs))
    data: object = {} if payload is None else payload
    if not is_object(data):
        raise AddJobError(f"payload must be an object, not {type(data).__name__}")
    _check_times(options)
    key, max_attempts = options.get("job_key"), options.get("max_attempts")
    return statements.add_job(
        job_id=job_id,
        payload=encode(data, "payload", AddJobError),
        job_key=None if key is None else require_text("job_key", key, error=AddJobError),
        job_key_mode=_checked_mode(options),
        run_at=options.get("run_at"),
        delay=options.get("delay"),
        max_debounce=options.get("max_debounce"),
        priority=_within("priority", options.get("priority", 0), _PRIORITIES),
        max_attempts=jobs[job_id].retries + 1
        if max_attempts is None
        else _within("max_attempts", max_attempts, range(1, _MOST_ATTEMPTS + 1)),
        wake=wake,
    )


def added(job_id: str, rows: Sequence[AddedRow]) -> Dispatched:
    """Return what became of an added run: what the statement's only row says."""
    row = rows[0]
    return Dispatched(job_id, row.outcome, row.run_id, row.due)


def _check_times(options: AddJobOptions) -> None:
    run_at, delay = options.get("run_at"), options.get("delay")
    if run_at is not None and delay is not None:
        raise AddJobError("give run_at or delay, not both")
    if run_at is not None:
        _check_run_at(run_at)
    if delay is not None:
        require_length("delay", delay, error=AddJobError)


def _check_run_at(run_at: object) -> None:
    if not isinstance(run_at, datetime):
        raise AddJobError(f"run_at must be a datetime, not {type(run_at).__name__}")
    if run_at.utcoffset() is None:
        raise AddJobError("run_at must be aware: give it a time zone")
    if not _EARLIEST <= run_at < _LATEST:
        raise AddJobError("run_at must be of the years 1000 to 9998")


def _checked_mode(options: AddJobOptions) -> JobKeyMode:
    mode = options.get("job_key_mode", "replace")
    if mode not in MODES:
        raise AddJobError(f"job_key_mode must be one of {', '.join(MODES)}")
    if "job_key_mode" in options and options.get("job_key") is None:
        raise AddJobError(f"job_key_mode {mode} needs a job_key")
    bound = options.get("max_debounce")
    if (mode == "debounce") != (bound is not None):
        raise AddJobError("job_key_mode debounce needs max_debounce, and no other mode takes it")
    if bound is not None and not require_length("max_debounce", bound, error=AddJobError):
        raise AddJobError("max_debounce must be longer than nothing")
    return mode


def _within(name: str, value: object, allowed: range) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
        raise AddJobError(f"{name} must be from {allowed[0]} to {allowed[-1]}, not {value}")
    return value
