"""Memos: what is kept of a run's steps, and how one pass holds its steps against them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from jobspec_engine.errors import StepDrift

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Kind = Literal["run", "sleep", "send", "wait", "invoke", "version"]
State = Literal["waiting", "done", "failed"]

# A sleep does nothing that could be done twice, and a handler may come to fewer of them when it is
# entered again: the status that it polls has moved on. A version is asked for where there was none.
_FREE: frozenset[Kind] = frozenset({"sleep", "version"})


class StepKey(NamedTuple):
    """Which step: the task it is in, its name, and which call of that name, counted from 1.

    `task` is empty in the handler's own task.
    """

    task: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"`{self.name}`{self._which()}"

    @property
    def title(self) -> str:
        """Return what a table calls it."""
        return f"{self.name}{self._which()}"

    def _which(self) -> str:
        call = "" if self.number == 1 else f", call {self.number}"
        task = f", task {self.task}" if self.task else ""
        return f"{call}{task}"


class StepCall(NamedTuple):
    """A step that a handler calls; `position` counts its task's steps, 0 for one that is free.

    `before` is the step that came before it: the last one that is not free, of its task or, for the
    first of a task, of its parent when the task was made.
    """

    key: StepKey
    kind: Kind
    position: int
    before: StepKey | None = None


class Memo(NamedTuple):
    """What is kept of a step, a row of `job_step`. `result` and `error` are JSON text.

    An event that came at `answers_from` or later may answer the step: a wait that comes next looks
    back as far as that.
    """

    key: StepKey
    position: int
    kind: Kind
    state: State
    revision: int
    failures: int
    result: str | None
    error: str | None
    wake_at: datetime | None
    answers_from: datetime


def is_free(kind: Kind) -> bool:
    """Tell whether a pass may leave out a step of this kind that an earlier one came to."""
    return kind in _FREE


class Memos:
    """The memos of a run as one pass comes to them again.

    Each task's steps must come in the order in which they were recorded, without a gap and under
    their names: a handler that was changed while its run was under way is found at the first step
    that differs, before that does anything.
    """

    def __init__(self, kept: Mapping[StepKey, Memo]) -> None:
        self._kept = kept
        self._at = {(key.task, memo.position): key for key, memo in kept.items() if memo.position}
        self._left = set(self._at.values())

    def __bool__(self) -> bool:
        return bool(self._kept)

    def take(self, call: StepCall) -> Memo | None:
        """Return the memo of a step that is called; None: it is new.

        Raises `StepDrift` where the run has recorded another step.
        """
        memo = self._kept.get(call.key)
        if is_free(call.kind):
            return memo if memo is not None and memo.kind == call.kind else None
        recorded = self._at.get((call.key.task, call.position))
        if recorded is not None and recorded != call.key:
            raise StepDrift(str(recorded), f"where the handler now comes to step {call.key}")
        if memo is not None and memo.kind != call.kind:
            raise StepDrift(str(call.key), f"as `{memo.kind}`, which is now `{call.kind}`")
        if memo is not None and memo.position != call.position:
            was = f"as number {memo.position} of its task, which is now number {call.position}"
            raise StepDrift(str(call.key), was)
        self._left.discard(call.key)
        return memo

    def require_all_taken(self) -> None:
        """Raise `StepDrift` if this pass, which is over, left out a step that was recorded."""
        if self._left:
            first = min(self._left, key=lambda key: (self._kept[key].position, key))
            raise StepDrift(str(first), "and the handler has now ended without it")


# Those of a run that has none.
NO_MEMOS = Memos({})


class StepCalls:
    """Counts the steps of one task: by name for their keys, all in all for their positions."""

    __slots__ = ("_numbers", "last", "position", "task")

    def __init__(self, task: str, before: StepKey | None = None) -> None:
        self.task = task
        self.last = before
        self.position = 0
        self._numbers: dict[str, int] = {}

    def next(self, name: str, kind: Kind) -> StepCall:
        """Return the next step of this name."""
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        key, before = StepKey(self.task, name, number), self.last
        if is_free(kind):
            return StepCall(key, kind, 0, before)
        self.position += 1
        self.last = key
        return StepCall(key, kind, self.position, before)
