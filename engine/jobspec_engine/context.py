"""What a handler is given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobspec_engine.rows import Claimed
    from jobspec_engine.steps import Steps


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


def received_event(text: str) -> ReceivedEvent:
    """Return the event that the memo of a step keeps."""
    kept = json.loads(text)
    return ReceivedEvent(kept["id"], kept["name"], kept["ts"], json.dumps(kept["data"]))


@dataclass(frozen=True, slots=True)
class Context:
    """One pass of an attempt at a run, as its handler sees it.

    `attempt` counts from 1. A worker that dies does not use an attempt up, nor does a run that
    gives its slot back: the handler is entered again, from the top, with the same `attempt`, and
    `pass_number` goes up. `step` keeps results over that.
    """

    run_id: int
    job_id: str
    attempt: int
    max_attempts: int
    pass_number: int
    event: ReceivedEvent
    step: Steps

    @classmethod
    def of(cls, run: Claimed, event: ReceivedEvent, steps: Steps) -> Context:
        """Return the context of a claimed run, with its event and what its steps are called by."""
        return cls(run.run_id, run.job_id, run.attempt, run.max_attempts, run.passes, event, steps)


def event_of(run: Claimed) -> ReceivedEvent:
    """Return the event of a claimed run."""
    return ReceivedEvent(run.event_id, run.event_name, run.event_ts, run.event_data)
