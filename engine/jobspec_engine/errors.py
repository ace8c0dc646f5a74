"""The errors of the engine. Each message names what is wrong and what to do about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from psycopg import OperationalError, ProgrammingError

_LONGEST_WAIT = timedelta(days=366)


class EngineError(Exception):
    """The base of every error the engine raises on purpose."""


class EmbeddedPostgresError(EngineError):
    """The bundled Postgres could not be found, set up, started or stopped."""


class MigrationError(EngineError):
    """The schema is not at the version this code needs, or cannot be brought to it."""


class EditedMigrationError(MigrationError):
    """A migration that was applied to a schema is another one in this code."""


class NotOpenError(EngineError):
    """A client is used before it was opened, or after it was closed."""


class UnreachableError(EngineError, OperationalError):
    """No connection to the database came in time."""


class DsnError(EngineError, ProgrammingError):
    """An address of a database can't be read. Nothing of it is repeated: it may be the password."""


class ArgumentError(EngineError, ValueError):
    """An argument is not of a kind that the database could have a row for."""


class UnsupportedOptionError(EngineError):
    """A job has an option that the engine can't honour; it is refused, never dropped."""


class HandlerError(EngineError):
    """A job's handler is missing, can't be imported or can't be called."""


class WorkerError(EngineError, ValueError):
    """A worker is asked for with options that can't be met."""


class NonRetriable(Exception):  # noqa: N818  what a handler says by it
    """Raised by a handler to end its run at once, however many attempts are left."""


class RetryAfter(Exception):  # noqa: N818  what a handler says by it
    """Raised by a handler to be tried again at a time of its own choice.

    `after` is how long from now, or an aware datetime, at most a year off. It uses up an attempt as
    any failure does: when that was the last one, the run ends.

    Raises `ValueError` for what is no time, is in no zone, or too far off.
    """

    def __init__(self, after: timedelta | datetime, message: str = "") -> None:
        super().__init__(message or f"after {after}")
        self.after = checked_wait(after)


def checked_wait(after: object) -> timedelta | datetime:
    """Return what `RetryAfter` was given, a datetime in UTC. Raises `ValueError`, as that tells."""
    if isinstance(after, datetime):
        if after.utcoffset() is None:
            raise ValueError("RetryAfter needs an aware datetime: give it a time zone")
        try:
            return after.astimezone(UTC)
        except OverflowError:
            raise ValueError("RetryAfter needs a datetime of the years 1 to 9999 in UTC") from None
    if not isinstance(after, timedelta):
        raise ValueError(f"RetryAfter needs a timedelta or a datetime, not {type(after).__name__}")  # noqa: TRY004
    if not timedelta(0) <= after <= _LONGEST_WAIT:
        raise ValueError("RetryAfter needs a time from nothing to a year")
    return after


class ReplayError(EngineError, ValueError):
    """A call asks to replay what can't be replayed."""


class ResultError(EngineError, ValueError):
    """What a handler returned is not JSON, and so can't be kept."""


class AddJobError(EngineError, ValueError):
    """A call of `add_job` asks for what can't be done."""


class StepError(EngineError, ValueError):
    """A step is called in a way that can't be kept."""


class StepFailed(EngineError):  # noqa: N818  it is what became of the step, not a fault of its own
    """A step failed, and is not tried again.

    It is raised anew in each pass, from what is kept of the failure: `error_type` is the name of
    the error's class, `message` its text. `final` tells that trying again would not help.
    """

    def __init__(self, step: str, error_type: str, message: str, *, final: bool = False) -> None:
        super().__init__(f"step {step} failed: {error_type}: {message}")
        self.step = step
        self.error_type = error_type
        self.message = message
        self.final = final


class StepDrift(BaseException):  # a handler's `except Exception` must not go on from here
    """A run recorded a step that its handler, changed since, does not come to."""

    def __init__(self, step: str, what: str) -> None:
        super().__init__(
            f"the run has recorded step {step}, {what}: its code was changed while it was under"
            " way, or goes by something that no step recorded. Put the step back, or keep the old"
            " path for older runs by `context.step.version`; then replay the run, which goes on"
            " from its memos"
        )
        self.step = step
