"""Jobs declared in Python: one decorator registers the spec and its handler."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, Unpack

from jobspec.compile import compile  # noqa: A004  the word for what it does
from jobspec.spec import Declarations, Job, JobOptions
from jobspec.spec.arguments import require_fields, required

Handler = TypeVar("Handler", bound=Callable[..., object])


class Registry(Declarations):
    """Jobs declared in Python, to be given to `compile()`.

    jobs = Registry()

    @jobs.job(id="email.send", triggers=["email.send"], idempotency="event.data.key")
    async def send_email(ctx): ...
    """

    def __init__(self) -> None:
        self._jobs: list[Job] = []

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs)

    def job(self, **options: Unpack[JobOptions]) -> Callable[[Handler], Handler]:
        """Return a decorator that registers a function as the handler of a job.

        The options are those of a spec file, in snake_case. An option that is a mapping there is
        a class of `jobspec.spec` or a dict here, and a duration may be a `timedelta`.

        Raises `CompileError` at once, before there is anything to decorate, for what a check of
        the same spec in a file would find, such as a key that can't be resolved, and for an id
        that is in the registry already. Raises `TypeError` for an option that does not exist or
        is missing, and for a handler that can't be called.
        """
        require_fields("a job", options, tuple(JobOptions.__annotations__), required(Job))
        job = Job(**options, declared_at=_place_of_caller())
        self._check(job)

        def register(handler: Handler) -> Handler:
            given: object = handler
            if not callable(given):
                kind = type(given).__name__
                raise TypeError(f"a handler is a function, and this is of type {kind}")
            self._check(job)  # another one may have taken its id since
            self._jobs.append(replace(job, handler=handler))
            return handler

        return register

    def _check(self, job: Job) -> None:
        compile([*(known for known in self if known.id == job.id), job])


def _place_of_caller() -> str:
    """Return the file and the line that called the caller of this, such as `myapp/jobs.py:12`."""
    # private by its name only: it is documented, and `inspect` has no other way
    frame = sys._getframe(2)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    file = Path(frame.f_code.co_filename)
    shown = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return f"{shown}:{frame.f_lineno}"
