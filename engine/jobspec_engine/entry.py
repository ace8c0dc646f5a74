"""A run that this worker holds: what was claimed, and the task of its pass once there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from jobspec_engine.rows import Claimed, Held


class Entry:
    """One entry into a handler, from the claim to its end."""

    __slots__ = ("began", "entered", "held", "left", "run", "task", "until")

    task: asyncio.Task[Any]  # set when it is started

    def __init__(self, run: Claimed, held: Held) -> None:
        self.run = run
        self.held = held
        # When its pass began; until when it waits for a slot at the most. Both in monotonic time.
        self.began = 0.0
        self.until = 0.0
        # Whether its pass has begun; whether the worker has it end. A handler may cancel its own
        # task, which is another matter: then the attempt has failed.
        self.entered = False
        self.left = False

    def leave(self) -> bool:
        """Have the pass end as soon as its handler lets it; false: it was told so before."""
        if self.left:
            return False
        self.left = True
        if self.entered:
            self.task.cancel()
        return True
