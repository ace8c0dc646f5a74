"""What `compile()` returns: frozen, typed, with nothing left to parse.

Durations are `timedelta`s, keys are `KeyTemplate`s, cron texts are `Schedule`s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from jobspec.backoff import Retry

if TYPE_CHECKING:  # a check without schedules must not load the time zones
    from jobspec.keys import KeyTemplate
    from jobspec.schedules import Schedule

Handler = Callable[..., object]


@dataclass(frozen=True, slots=True)
class EventTrigger:
    """Starts a job on every event of this name, where `condition` (CEL) does not say no."""

    event: str
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class CronTrigger:
    """Starts a job on a schedule, each tick up to `jitter` late.

    `missed` says what becomes of ticks that came while no worker was there: none of them starts
    the job, the latest does once, or all do.
    """

    schedule: Schedule
    jitter: timedelta = timedelta(0)
    missed: Literal["skip", "once", "all"] = "skip"


Trigger = EventTrigger | CronTrigger


@dataclass(frozen=True, slots=True)
class Idempotency:
    """Events whose key resolves to the same text make one run.

    The key counts for good, for a time from its first event, or until its run has ended.
    """

    key: KeyTemplate
    window: timedelta | Literal["forever", "while-active"] = "forever"


@dataclass(frozen=True, slots=True)
class Debounce:
    """Events with the same key that arrive less than `period` apart make one run.

    The run is put off by `period` at every event, never past `timeout` after the first.
    Without a key all events of the job share one.
    """

    period: timedelta
    key: KeyTemplate | None = None
    timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `limit` runs a `period` and key; further events are dropped."""

    limit: int
    period: timedelta
    key: KeyTemplate | None = None


@dataclass(frozen=True, slots=True)
class Throttle:
    """At most `limit` run starts a `period` and key, `burst` more at once; further ones wait."""

    limit: int
    period: timedelta
    burst: int = 1
    key: KeyTemplate | None = None


@dataclass(frozen=True, slots=True)
class Concurrency:
    """At most `limit` runs executing at once in a scope, for each key."""

    limit: int
    key: KeyTemplate | None = None
    scope: Literal["fn", "env", "account"] = "fn"


@dataclass(frozen=True, slots=True)
class BatchEvents:
    """Up to `max_size` events, or those of `timeout`, make one run."""

    max_size: int
    timeout: timedelta
    key: KeyTemplate | None = None
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class Singleton:
    """One run at a time for each key; `mode` says what a second one does."""

    mode: Literal["skip", "cancel"]
    key: KeyTemplate | None = None


@dataclass(frozen=True, slots=True)
class Cancellation:
    """An event that cancels runs: those that `condition` or the equal path `match` picks."""

    event: str
    condition: str | None = None
    match: str | None = None
    timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a run may wait for its start, last until its finish, and the handler take.

    `start` counts from when the run is due to its first claim, `finish` from there to its end;
    `attempt` counts anew each time the handler is entered.
    """

    start: timedelta | None = None
    finish: timedelta | None = None
    attempt: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledJob:
    """One job, checked and typed. `handler` is a callable or its `module:name`."""

    id: str
    triggers: tuple[Trigger, ...]
    name: str
    handler: str | Handler | None = None
    retries: int = 4
    retry: Retry = field(default_factory=Retry)
    idempotency: Idempotency | None = None
    debounce: Debounce | None = None
    rate_limit: RateLimit | None = None
    throttle: Throttle | None = None
    concurrency: tuple[Concurrency, ...] = ()
    priority: str | None = None
    batch_events: BatchEvents | None = None
    singleton: Singleton | None = None
    cancel_on: tuple[Cancellation, ...] = ()
    timeouts: Timeouts | None = None
    on_missing: Literal["skip", "reject"] = "skip"


@dataclass(frozen=True, slots=True)
class CompiledJobs(Mapping[str, CompiledJob]):
    """All jobs of one compilation, by id, in the order they were written."""

    jobs: tuple[CompiledJob, ...]
    _by_id: dict[str, CompiledJob] = field(init=False, repr=False, compare=False)
    _by_event: dict[str, tuple[CompiledJob, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_event: dict[str, list[CompiledJob]] = {}
        for job in self.jobs:
            for name in dict.fromkeys(t.event for t in job.triggers if isinstance(t, EventTrigger)):
                by_event.setdefault(name, []).append(job)
        object.__setattr__(self, "_by_id", {job.id: job for job in self.jobs})
        object.__setattr__(
            self, "_by_event", {name: tuple(jobs) for name, jobs in by_event.items()}
        )

    def __getitem__(self, job_id: str) -> CompiledJob:
        return self._by_id[job_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self.jobs)

    def for_event(self, name: str) -> tuple[CompiledJob, ...]:
        """Return the jobs that an event of this name triggers, in the order they were written."""
        return self._by_event.get(name, ())
