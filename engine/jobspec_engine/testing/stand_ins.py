"""Steps as a rehearsal has them: with functions that stand in, and workers that die at them."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from typing import TYPE_CHECKING, Any, cast

from jobspec import CompiledJobs
from jobspec_engine.handlers import load_handlers
from jobspec_engine.passes import PassEnded
from jobspec_engine.step_results import type_returned

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from jobspec_engine.context import Context
    from jobspec_engine.handlers import Handler
    from jobspec_engine.steps import Steps


class StandIns:
    """What a rehearsal changes of the steps of its jobs."""

    def __init__(self) -> None:
        self.functions: dict[str, Callable[..., Any]] = {}
        self.deadly: dict[str, bool] = {}  # by step: whether its function is called before
        self.entered: dict[str, None] = {}  # the steps that were run, in their order
        self.died = asyncio.Event()

    def require_deaths(self) -> None:
        """Raise `AssertionError` if no run came to a step at which its worker was to die."""
        if self.deadly:
            missed, entered = (
                ", ".join(f"`{one}`" for one in names) for names in (self.deadly, self.entered)
            )
            raise AssertionError(
                f"no run came to the step {missed}, at which its worker was to die; steps that were"
                f" run: {entered or 'none'}"
            )

    def jobs(self, jobs: CompiledJobs) -> CompiledJobs:
        """Return jobs whose handlers have these steps. Raises `HandlerError` as a worker does."""
        runnable = load_handlers(jobs)
        return CompiledJobs(
            tuple(
                # A sync handler can't have steps.
                dataclasses.replace(job, handler=self._with_steps(runnable[job.id].handler))
                if runnable[job.id].is_async
                else job
                for job in jobs.values()
            )
        )

    def _with_steps(self, handler: Handler) -> Handler:
        async def rehearsed(context: Context) -> object:
            steps = cast("Steps", _Steps(context.step, self))
            return await handler(dataclasses.replace(context, step=steps))

        return rehearsed


class _Steps:
    """The steps of one pass, each function looked up before it is called."""

    def __init__(self, steps: Steps, stand_ins: StandIns) -> None:
        self._steps = steps
        self._stand_ins = stand_ins
        self._dead = False

    def run(
        self,
        name: str,
        fn: Callable[..., Any],
        /,
        *args: Any,
        type: Any = None,  # noqa: A002  as in Steps
        **options: Any,
    ) -> Coroutine[Any, Any, Any]:
        """Do as `Steps.run`, with the function that stands in."""
        self._require_alive()
        self._stand_ins.entered[name] = None
        wanted = type_returned(name, fn) if type is None else type
        stand_in = self._stand_ins.functions.get(name, fn)
        work = self._mortal(name, stand_in) if name in self._stand_ins.deadly else stand_in
        step: Coroutine[Any, Any, Any] = self._steps.run(name, work, *args, type=wanted, **options)
        return step

    def __getattr__(self, kind: str) -> Any:
        self._require_alive()
        return getattr(self._steps, kind)

    def _mortal(self, name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
        async def dying(*args: Any) -> object:
            called = self._stand_ins.deadly.pop(name, None)
            if called is not False:
                value = fn(*args)
                value = await value if inspect.isawaitable(value) else value
                if called is None:
                    return value
            self._dead = True
            self._stand_ins.died.set()
            return await asyncio.Event().wait()

        return dying

    def _require_alive(self) -> None:
        if self._dead:
            raise PassEnded("the worker is dead")
