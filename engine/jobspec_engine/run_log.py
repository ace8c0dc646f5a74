"""What a worker logs of its runs, with the fields that structured logs are searched by."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

    from jobspec_engine.rows import Claimed


class RunLog:
    """The lines of one worker, each of which begins with its run."""

    def __init__(self, log: logging.Logger, worker: str) -> None:
        self._log = log
        self._worker = worker

    def of(self, run_id: int, level: int, what: str) -> None:
        """Log something of a run of which no more is known here."""
        extra = {"worker": self._worker, "run_id": run_id}
        self._log.log(level, "run %d: %s", run_id, what, extra=extra)

    def of_attempt(self, run: Claimed, level: int, what: str) -> None:
        """Log how an attempt goes."""
        if self._log.isEnabledFor(level):  # most are not
            words = (run.run_id, run.job_id, run.attempt, run.max_attempts, what)
            self._log.log(
                level, "run %d: job %s, attempt %d of %d %s", *words, extra=self.fields(run)
            )

    def fields(self, run: Claimed) -> dict[str, object]:
        """Return what a record of a run carries."""
        return {
            "worker": self._worker,
            "run_id": run.run_id,
            "job_id": run.job_id,
            "attempt": run.attempt,
        }
