"""What a person writes about jobs, as Python sees it.

Each class is one mapping of a spec file, and its fields are the fields that mapping may have: in
files by the reference's own names (`rateLimit`), here in snake_case (`rate_limit`). Values are as
they are written, so a key is a text and a duration is `"2m"` or a `timedelta`; reading them is the
business of `jobspec.spec.options`.

Plain dataclasses, since a check of one small file must not pay for building validators
(docs/decisions/0007-specs-read-by-hand.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

from jobspec.spec.arguments import by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Duration = str | timedelta
"""A length of time: `"90s"`, `"2m"`, `"1h30m"`, `"7d"`, or a `timedelta`."""

Condition = str
"""A CEL expression over `event` (and `async`, the cancelling event)."""


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Starts a job: on an `event`, where `if_` does not say no, or by a `cron` schedule."""

    event: str | None = None
    if_: Condition | None = None
    cron: str | None = None
    jitter: Duration | None = None
    missed: Literal["skip", "once", "all"] | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """Events whose key is the same text make one run, for good or for a `window`."""

    key: str
    window: Literal["forever", "while-active"] | Duration | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Debounce:
    """A burst of events with the same key makes one run, `period` after the last of them."""

    period: Duration
    key: str | None = None
    timeout: Duration | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """At most `limit` runs a `period`; further events are dropped."""

    limit: int
    period: Duration
    key: str | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """At most `limit` starts a `period`, and `burst` more at once; further runs wait."""

    limit: int
    period: Duration
    burst: int | None = None
    key: str | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """At most `limit` runs executing at once."""

    limit: int
    key: str | None = None
    scope: Literal["fn", "env", "account"] | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """`run` is a CEL expression for the seconds by which a run goes ahead of others."""

    run: Condition


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEvents:
    """Up to `max_size` events, or those that arrive within `timeout`, make one run."""

    max_size: int
    timeout: Duration
    key: str | None = None
    if_: Condition | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Singleton:
    """One run at a time; a second one is skipped, or cancels the first."""

    mode: Literal["skip", "cancel"]
    key: str | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """An event that cancels the runs picked by `if_`, or by the equal path `match`."""

    event: str
    if_: Condition | None = None
    match: str | None = None
    timeout: Duration | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long a run may wait for its `start`, and last until its `finish`.

    `attempt` is how long the handler may take each time it is entered.
    """

    start: Duration | None = None
    finish: Duration | None = None
    attempt: Duration | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRetry:
    """How errors of one class are retried; `error` is the class, or its `module:name`."""

    error: type[BaseException] | str
    policy: Literal["reference", "exponential", "fixed", "never"]
    delay: Duration | None = None
    max: Duration | None = None
    factor: float | None = None
    jitter: float | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How long a failed run waits for its next attempt.

    By the reference's table, a `fixed` time (`delay`), or an `exponential` one: `delay`, then each
    time `factor` times as long, at most `max`. `jitter` is the part of the wait that is random.
    `on` says otherwise for classes of errors; the first that fits counts.
    """

    policy: Literal["reference", "exponential", "fixed"] | None = None
    delay: Duration | None = None
    max: Duration | None = None
    factor: float | None = None
    jitter: float | None = None
    on: Sequence[ErrorRetry | Mapping[str, Any]] | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The spec of one job. `handler` is what runs it: a function, or its `module:name`.

    `declared_at` is for messages: the file and the line of a declaration, which files don't have.
    """

    id: str
    triggers: Sequence[Trigger | Mapping[str, Any] | str]
    name: str | None = None
    handler: Callable[..., object] | str | None = None
    retries: int | None = None
    retry: Retry | Mapping[str, Any] | None = None
    idempotency: Idempotency | Mapping[str, Any] | str | None = None
    debounce: Debounce | Mapping[str, Any] | None = None
    rate_limit: RateLimit | Mapping[str, Any] | None = None
    throttle: Throttle | Mapping[str, Any] | None = None
    concurrency: (
        int | Concurrency | Mapping[str, Any] | Sequence[Concurrency | Mapping[str, Any]] | None
    ) = None
    priority: Priority | Mapping[str, Any] | None = None
    batch_events: BatchEvents | Mapping[str, Any] | None = None
    singleton: Singleton | Mapping[str, Any] | None = None
    cancel_on: Sequence[Cancellation | Mapping[str, Any]] | None = None
    timeouts: Timeouts | Mapping[str, Any] | None = None
    on_missing: Literal["skip", "reject"] | None = None
    declared_at: str | None = field(default=None, compare=False, metadata={"in_files": False})


class JobOptions(TypedDict, total=False):
    """The fields of `Job` as keyword arguments; a decorator already has the handler."""

    id: Required[str]
    triggers: Required[Sequence[Trigger | Mapping[str, Any] | str]]
    name: str | None
    retries: int | None
    retry: Retry | Mapping[str, Any] | None
    idempotency: Idempotency | Mapping[str, Any] | str | None
    debounce: Debounce | Mapping[str, Any] | None
    rate_limit: RateLimit | Mapping[str, Any] | None
    throttle: Throttle | Mapping[str, Any] | None
    concurrency: (
        int | Concurrency | Mapping[str, Any] | Sequence[Concurrency | Mapping[str, Any]] | None
    )
    priority: Priority | Mapping[str, Any] | None
    batch_events: BatchEvents | Mapping[str, Any] | None
    singleton: Singleton | Mapping[str, Any] | None
    cancel_on: Sequence[Cancellation | Mapping[str, Any]] | None
    timeouts: Timeouts | Mapping[str, Any] | None
    on_missing: Literal["skip", "reject"] | None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What is known of an event. `schema` says what its data holds.

    It is a JSON Schema, the path of a file with one, seen from the spec file, or the
    `module:Class` of a pydantic model, which is imported only where a check may import.
    """

    schema: Mapping[str, Any] | str | None = None


@by_name
@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A spec file: `events` by name, and `jobs`."""

    events: Mapping[str, Event | None] | None = None
    jobs: Sequence[Job] | None = None


@cache
def file_names(model: type) -> dict[str, str]:
    """Return the fields of one of the classes above, by the names that files use for them."""
    written = (one.name for one in fields(model) if one.metadata.get("in_files", True))
    return {file_name(name): name for name in written}


def file_name(name: str) -> str:
    """Return the name that files use for a field: the reference's own, but for our additions."""
    if name in _OURS:
        return name
    head, *tail = name.rstrip("_").split("_")
    return head + "".join(word.capitalize() for word in tail)


_OURS = frozenset({"on_missing"})
