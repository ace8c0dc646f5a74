"""What a handler is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobspec_engine.received import ReceivedEvent
    from jobspec_engine.rows import Claimed
    from jobspec_engine.steps import Steps


@dataclass(frozen=True, init=False)
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

    def __init__(
        self,
        run_id: int,
        job_id: str,
        attempt: int,
        max_attempts: int,
        pass_number: int,
        event: ReceivedEvent,
        step: Steps,
    ) -> None:
        vars(self).update(  # one call, and not one a field
            run_id=run_id,
            job_id=job_id,
            attempt=attempt,
            max_attempts=max_attempts,
            pass_number=pass_number,
            event=event,
            step=step,
        )

    @classmethod
    def of(cls, run: Claimed, event: ReceivedEvent, steps: Steps) -> Context:
        """Return the context of a claimed run, with its event and what its steps are called by."""
        return cls(run.run_id, run.job_id, run.attempt, run.max_attempts, run.passes, event, steps)
