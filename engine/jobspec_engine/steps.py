"""Durable steps, and the rule for them.

What survives a restart: when a worker dies, or a run gives its slot back for a long wait, the
handler is entered again from the top, and all that it held in memory is gone. What a step returned
is not: it is kept in `job_step`, and the step returns it again without being done again. So put a
step at every side effect that must not happen twice (provision, claim, charge, tear down) and at
every decision that later steps hang on; let its function give the other side a key that is the same
in each pass, such as `context.event.id`, since a worker may die between the effect and its memo.
Wait between the steps with a plain `await`, which costs nothing and is begun again after a restart.
Measure time from what a step returned, never from a variable of this pass, and let a read that
failed decide nothing. The reasons are in docs/decisions/0009-what-survives-a-restart.md.
"""

from __future__ import annotations

import inspect
import json
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, cast, overload

from jobspec import Backoff, EventError
from jobspec_engine.errors import StepError, StepFailed
from jobspec_engine.event_match import match_text
from jobspec_engine.events import Event, Sent
from jobspec_engine.failure import message_of
from jobspec_engine.handlers import is_async
from jobspec_engine.payload import encode, is_object
from jobspec_engine.received import received_event
from jobspec_engine.retries import Retries
from jobspec_engine.step_arguments import require_event, require_length, require_time
from jobspec_engine.step_results import ResultType, type_returned
from jobspec_engine.step_statements import MemoWrite
from jobspec_engine.threads import in_thread

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from concurrent.futures import Executor
    from datetime import datetime, timedelta

    from jobspec_engine.memos import Kind, Memo, StepCall
    from jobspec_engine.passes import Pass
    from jobspec_engine.received import ReceivedEvent

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

_REFERENCE = Backoff()

# The step whose function runs.
_inside: ContextVar[str | None] = ContextVar("jobspec_inside_step", default=None)


class Steps:
    """The steps of a handler: `context.step`.

    A step is named by its author. A name may come up again, in a loop say: its calls are counted in
    the order in which they are made, for each task of the handler. In concurrent tasks they are
    counted task by task, so that it does not matter which one is done first.

    What ends a pass leaves a handler as a `BaseException`; a handler that catches those must raise
    them again.
    """

    def __init__(self, of: Pass, threads: Executor) -> None:
        self._pass = of
        self._threads = threads

    @overload
    def run(
        self,
        name: str,
        fn: Callable[[*Arguments], Awaitable[T]],
        /,
        *args: *Arguments,
        type: Any = ...,
        retries: int = 0,
        backoff: Backoff = ...,
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def run(
        self,
        name: str,
        fn: Callable[[*Arguments], T],
        /,
        *args: *Arguments,
        type: Any = ...,
        retries: int = 0,
        backoff: Backoff = ...,
    ) -> Coroutine[Any, Any, T]: ...

    def run(  # type: ignore[misc]  # mypy can't tell that *args takes what *Arguments stands for
        self,
        name: str,
        fn: Callable[..., Any],
        /,
        *args: Any,
        type: Any = None,  # noqa: A002  it is what it is to everybody
        retries: int = 0,
        backoff: Backoff = _REFERENCE,
    ) -> Coroutine[Any, Any, Any]:
        """Call `fn(*args)`, once, and keep what it returns; return that in every pass.

        An async function runs in the event loop, a sync one in a thread. What it returns is kept as
        JSON, at most 1 MiB, and comes back as `type`, or as what `fn` is annotated to return; so it
        does in the first pass. When `fn` raises it is called again, `retries` times, after the
        waits of `backoff`.

        Raises `StepFailed` in every pass when that has not helped. If that leaves the handler, the
        next attempt at the run tries the step again.
        """
        call = self._call(name, "run")
        wanted = type_returned(name, fn) if type is None else type
        return self._run(
            call, _Work(fn, args, ResultType(name, wanted), Retries(backoff), retries + 1)
        )

    def sleep(self, name: str, length: timedelta) -> Coroutine[Any, Any, None]:
        """Sleep until a time that is kept: `length` from when the step is first come to.

        A short sleep (up to 10 s) is waited out in the process, a longer one gives the slot back.
        """
        call = self._call(name, "sleep")
        require_length(name, length)
        return self._sleep(call, delay=length)

    def sleep_until(self, name: str, until: datetime) -> Coroutine[Any, Any, None]:
        """Sleep until a time, an aware datetime, as `sleep` does."""
        call = self._call(name, "sleep")
        require_time(name, until)
        return self._sleep(call, wake_at=until)

    def send_event(
        self,
        event: str,
        data: Mapping[str, object],
        *,
        ts: int | None = None,
        name: str | None = None,
    ) -> Coroutine[Any, Any, Sent]:
        """Send an event, once; return what became of it. The step is named after the event.

        Raises `EventError` for an event that can't be kept.
        """
        call = self._call(name or event, "send")
        return self._send(call, Event(event, data, ts=ts))

    def wait_for_event(
        self,
        event: str,
        *,
        match: str | Mapping[str, str | float | bool | None] | None = None,
        timeout: timedelta,
        name: str | None = None,
    ) -> Coroutine[Any, Any, ReceivedEvent | None]:
        """Wait for an event; None if there is none within `timeout`.

        An event counts that came since the step before was begun (before the first one: since the
        run was made), at most ten minutes ago: so no answer to that step comes too soon. Each event
        counts for one wait of a task.

        `match` says which: by the path of a field that is as in the run's own event (`data.id`), or
        by paths and their values (`{"data.id": 7}`). The step is named after the event.
        """
        call = self._call(name or event, "wait")
        require_event(call.key.name, event)
        require_length(call.key.name, timeout)
        wanted = match_text(call.key.name, match, self._pass.event)
        write = MemoWrite.of(self._pass.held, call, "waiting")
        return self._wait(write._replace(delay=timeout, event_name=event, event_match=wanted), call)

    def invoke(
        self,
        job: str,
        data: Mapping[str, object] | None = None,
        *,
        type: Any = Any,  # noqa: A002  it is what it is to everybody
        name: str | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """Start a run of a job, once, and wait for its end; return its result as `type`.

        The run starts at once, whatever the job's keys say. The step is named after the job. Raises
        `StepFailed` when the run ends without success.
        """
        call = self._call(name or job, "invoke")
        if not is_object(data or {}):
            raise EventError(f"the data of step `{call.key.name}` must be an object")
        text = encode(data or {}, f"the data of step `{call.key.name}`", EventError)
        return self._invoke(call, job, text, ResultType(call.key.name, type))

    async def version(self, current: int) -> int:
        """Return the version of the handler that the run goes by: `current`, if the run is new.

        A run that has memos from before this step was there goes by version 1. It is the first
        step of a handler: see docs/guide/living-with-code-changes.md.
        """
        call = self._call("version", "version")
        with self._pass:
            memo = await self._pass.recall(call)
            if memo is None and self._pass.has_memos():
                return 1
            if memo is None:
                write = MemoWrite.of(self._pass.held, call, "done")
                memo = await self._pass.keep(write._replace(result=str(current)))
            return int(memo.result or 1)

    def enter(self, task: asyncio.Task[Any]) -> None:
        """Begin the pass: this task, which calls this, is the handler's own."""
        self._pass.branches.enter(task)

    def _call(self, name: str, kind: Kind) -> StepCall:
        if (outer := _inside.get()) is not None:
            raise StepError(f"step `{name}` is called inside step `{outer}`: steps can't be nested")
        return self._pass.call(name, kind)

    async def _run(self, call: StepCall, work: _Work) -> Any:
        with self._pass:
            memo = await self._pass.recall(call)
            cause = None
            while memo is None or memo.state == "waiting":
                if memo is not None and memo.wake_at is not None:
                    await self._pass.wait_until(memo.wake_at)
                self._pass.require_going_on()
                failures = 0 if memo is None else memo.failures
                write, cause = await self._try(call, work, failures)
                memo = await self._pass.keep(write)
            return self._settled(call, memo, work.type, cause)

    async def _try(
        self, call: StepCall, work: _Work, failures: int
    ) -> tuple[MemoWrite, Exception | None]:
        """Call a step's function; return what to keep, and the error that it raised."""
        write = MemoWrite.of(self._pass.held, call, "done")._replace(begun_at=self._pass.time())
        inside = _inside.set(call.key.name)
        try:
            result = work.type.encode(await work.do(self._threads))
        except Exception as error:  # noqa: BLE001  it is kept, and raised from the memo
            return work.failed(write, error, failures + 1), error
        finally:
            _inside.reset(inside)
        return write._replace(result=result), None

    async def _sleep(
        self, call: StepCall, *, delay: timedelta | None = None, wake_at: datetime | None = None
    ) -> None:
        with self._pass:
            memo = await self._pass.recall(call)
            if memo is None:
                write = MemoWrite.of(self._pass.held, call, "done")
                memo = await self._pass.keep(write._replace(delay=delay, wake_at=wake_at))
            if memo.wake_at is not None:
                await self._pass.wait_until(memo.wake_at)

    async def _send(self, call: StepCall, event: Event) -> Sent:
        def write(sent: Sent) -> MemoWrite:
            kept = MemoWrite.of(self._pass.held, call, "done")
            return kept._replace(result=result.encode(sent))

        result = ResultType(call.key.name, Sent)
        with self._pass:
            memo = await self._pass.recall(call) or await self._pass.send(write, event)
            return cast("Sent", result.decode(memo.result))

    async def _wait(self, write: MemoWrite, call: StepCall) -> ReceivedEvent | None:
        with self._pass:
            memo = await self._pass.recall(call)
            if memo is None:
                memo = await self._pass.keep(write._replace(begun_at=self._pass.time()))
            if memo.state == "waiting":
                memo = await self._pass.look_back(call, memo)
            while memo.state == "waiting" and memo.wake_at is not None:
                if not self._pass.is_past(memo.wake_at):
                    await self._pass.park_wait(call, memo.wake_at)
                # An event may have come first: then that is what is kept.
                memo = await self._pass.keep(write._replace(state="done", delay=None))
            return None if memo.result is None else received_event(memo.result)

    async def _invoke(self, call: StepCall, job: str, data: str, result: ResultType) -> Any:
        with self._pass:
            memo = await self._pass.recall(call) or await self._pass.invoke(call, job, data)
            if memo.state == "waiting":
                await self._pass.park(None)
            return self._settled(call, memo, result)

    def _settled(
        self, call: StepCall, memo: Memo, result: ResultType, cause: Exception | None = None
    ) -> Any:
        """Return what a memo keeps, or raise what it keeps."""
        if memo.state == "done":
            return result.decode(memo.result)
        error = json.loads(memo.error or "{}")
        failed = StepFailed(str(call.key), error["type"], error["message"], final=error["final"])
        raise self._pass.failed(call, failed) from cause


@dataclass(frozen=True, slots=True)
class _Work:
    """What a step does, and how often it may be tried."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    type: ResultType
    retries: Retries
    max_tries: int

    async def do(self, threads: Executor) -> object:
        """Call the function once."""
        if is_async(self.fn):
            return await self.fn(*self.args)
        value = await in_thread(threads, lambda: self.fn(*self.args))
        return await value if inspect.isawaitable(value) else value

    def failed(self, write: MemoWrite, error: Exception, failures: int) -> MemoWrite:
        """Return what to keep of a call that raised: to try again, or that it failed."""
        verdict = self.retries.verdict(error, failures, self.max_tries)
        if verdict.delay is not None or verdict.at is not None:
            return write._replace(
                state="waiting", failures=failures, delay=verdict.delay, wake_at=verdict.at
            )
        told = {
            "type": type(error).__name__,
            "message": message_of(error),
            "final": verdict.reason == "not-retriable",
        }
        return write._replace(state="failed", failures=failures, error=json.dumps(told))
