"""The errors of the engine. Each message names what is wrong and what to do about it."""

from __future__ import annotations


class EngineError(Exception):
    """The base of every error the engine raises on purpose."""


class EmbeddedPostgresError(EngineError):
    """The bundled Postgres could not be found, set up, started or stopped."""


class MigrationError(EngineError):
    """The schema cannot be brought to the version this code needs."""


class UnsupportedOptionError(EngineError):
    """A job has an option that the engine can't honour; it is refused, never dropped."""


class HandlerError(EngineError):
    """A job's handler is missing, can't be imported or can't be called."""


class ResultError(EngineError, ValueError):
    """What a handler returned is not JSON, and so can't be kept."""


class AddJobError(EngineError, ValueError):
    """A call of `add_job` asks for what can't be done."""
