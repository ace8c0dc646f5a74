"""What a handler is given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobspec_engine.rows import Claimed


@dataclass(frozen=True)
class ReceivedEvent:
    """The event a run carries. `ts` is in milliseconds since 1970."""

    id: str
    name: str
    ts: int
    json: str

    @cached_property
    def data(self) -> Any:
        """The data as it was sent."""
        return json.loads(self.json)


@dataclass(frozen=True, slots=True)
class Context:
    """One attempt at a run, as its handler sees it.

    `attempt` counts from 1. A worker that dies does not use an attempt up: the handler is entered
    again, from the top, with the same `attempt`.
    """

    run_id: int
    job_id: str
    attempt: int
    max_attempts: int
    event: ReceivedEvent

    @classmethod
    def of(cls, run: Claimed) -> Context:
        """Return the context of a claimed run."""
        event = ReceivedEvent(run.event_id, run.event_name, run.event_ts, run.event_data)
        return cls(run.run_id, run.job_id, run.attempt, run.max_attempts, event)
