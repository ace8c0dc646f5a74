"""The bundled engine: runs compiled jobs on nothing but Postgres.

All errors are in `jobspec_engine.errors`; here are those that handlers and callers meet most.
"""

from __future__ import annotations

from jobspec_engine.async_client import AsyncClient
from jobspec_engine.client import Client
from jobspec_engine.context import Context
from jobspec_engine.embedded import EmbeddedPostgres
from jobspec_engine.engine import Engine
from jobspec_engine.errors import (
    EngineError,
    NonRetriable,
    NotOpenError,
    RetryAfter,
    StepDrift,
    StepError,
    StepFailed,
    UnreachableError,
)
from jobspec_engine.events import Dispatched, Event, Sent
from jobspec_engine.replay import Replayed
from jobspec_engine.retention import Retention
from jobspec_engine.rows import Cancelled, DeadLetters
from jobspec_engine.worker import Worker

__all__ = [
    "AsyncClient",
    "Cancelled",
    "Client",
    "Context",
    "DeadLetters",
    "Dispatched",
    "EmbeddedPostgres",
    "Engine",
    "EngineError",
    "Event",
    "NonRetriable",
    "NotOpenError",
    "Replayed",
    "Retention",
    "RetryAfter",
    "Sent",
    "StepDrift",
    "StepError",
    "StepFailed",
    "UnreachableError",
    "Worker",
]
