"""Which task of a handler calls a step.

A handler may run steps in concurrent tasks. The order in which those come to their steps differs
from pass to pass, so steps are counted within their task, and a task is known by what is the same
in each pass: how many steps its parent had called when it was made, and the first step of its own.

Tasks that are alike in both are told apart by their order. That holds if they come to their first
steps at once, as those of one `gather` do. If they await something else before, their order is that
of what they awaited; they are refused, and need names of their own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import ref

from jobspec_engine.errors import StepError
from jobspec_engine.memos import StepCalls

if TYPE_CHECKING:
    from jobspec_engine.memos import Kind, StepCall, StepKey

_MAX_LABEL = 1000  # bytes; an index entry has no room for much more


# A task, which has what refers to it here in its context. Were it not by a weak reference, only the
# collector of cycles would free it, and that would take a third of what a worker does for a run.
_Task = Callable[[], "asyncio.Task[Any] | None"]


class _Branch:
    """One task of a handler."""

    __slots__ = ("calls", "owner", "task")

    def __init__(self, owner: Branches, calls: StepCalls, task: _Task) -> None:
        self.owner = owner
        self.calls = calls
        self.task = task


# The task that code runs in, how many steps it had called and which was the last; in a task that
# has not called any, its parent's, as of when it was made: a new task begins with a copy of its
# parent's context.
_here: ContextVar[tuple[_Branch, int, StepKey | None] | None] = ContextVar(
    "jobspec_step", default=None
)


class Branches:
    """Counts the steps of one pass of a handler, task by task."""

    def __init__(self) -> None:
        self._alike: dict[str, tuple[object, int]] = {}
        self._turn: object | None = None
        self._own: _Task = _no_task
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def enter(self, task: asyncio.Task[Any]) -> None:
        """Begin a pass: this task, which calls this, is the handler's own."""
        self._loop = task.get_loop()
        self._thread = threading.get_ident()
        self._own = ref(task)
        _here.set((_Branch(self, StepCalls(""), self._own), 0, None))

    def in_own_task(self) -> bool:
        """Tell whether the handler's own task calls this."""
        return asyncio.current_task() is self._own()

    def cancel(self) -> None:
        """Cancel the handler's own task, and by that what it awaits."""
        task = self._own()
        if task is not None:
            task.cancel()

    def call(self, name: str, kind: Kind) -> StepCall:
        """Count a step of the task that calls this. Raises `StepError` where that can't be told."""
        branch = self._branch(name)
        call = branch.calls.next(name, kind)
        _here.set((branch, branch.calls.position, branch.calls.last))
        return call

    def _branch(self, name: str) -> _Branch:
        here = _here.get()
        elsewhere = threading.get_ident() != self._thread
        if here is None or here[0].owner is not self or elsewhere:
            raise StepError(
                f"step `{name}` is called outside of its handler: steps are for `async def`"
                " handlers and the tasks that those make"
            )
        branch, position, before = here
        task = asyncio.current_task(self._loop)  # to look up the running loop takes a system call
        if branch.task() is task:
            return branch
        parent = branch.calls.task and f"{branch.calls.task} > "
        label = self._label(f"{parent}{position}/{name}", name)
        return _Branch(self, StepCalls(label, before), _reference(task))

    def _label(self, alike: str, name: str) -> str:
        turn, count = self._alike.get(alike, (self._this_turn(), 0))
        if turn is not self._this_turn():
            raise StepError(
                f"concurrent tasks come to step `{name}` first, in an order that may differ each"
                f' time: give each task\'s steps names of their own, such as f"{name}:{{key}}"'
            )
        self._alike[alike] = (turn, count + 1)
        label = f"{alike}#{count + 1}"
        if len(label.encode()) > _MAX_LABEL:
            raise StepError(f"tasks are nested too deeply at step `{name}`")
        return label

    def _this_turn(self) -> object:
        """Return what stands for this turn of the event loop and the tasks that are ready in it."""
        if self._turn is None:
            self._turn = object()
            asyncio.get_running_loop().call_soon(self._end_turn)
        return self._turn

    def _end_turn(self) -> None:
        self._turn = None


def _reference(task: asyncio.Task[Any] | None) -> _Task:
    return _no_task if task is None else ref(task)


def _no_task() -> None:
    return None
