"""What the model is made of: events, runs, used keys, memos."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

# What a key expires at that is free whatever the time is.
FREE = datetime(1970, 1, 1, tzinfo=UTC)


def milliseconds(at):
    return int(at.timestamp() * 1000)


@dataclass(eq=False)
class Event:
    """An event that was sent; `ts` is when it happened, by its sender's word."""

    id: str
    name: str
    data: dict
    ts: int
    received_at: datetime
    stands_for: str | None = None  # the event whose id its handler is told, where a run goes on

    @property
    def told_id(self):
        return self.stands_for or self.id


@dataclass(eq=False)
class Run:
    """One job, one event, from enqueue to its end. `id` is the engine's, once that is known."""

    job_id: str
    event: Event
    ts: int
    enqueued_at: datetime
    run_at: datetime
    max_attempts: int
    id: int | None = None
    state: str = "pending"
    run_by: datetime | None = None
    burst: str | None = None  # its debounce key, or job key
    mode: str | None = None
    events: int = 1
    priority: int = 0
    attempt: int = 0
    passes: int = 0
    refunds: int = 0
    errors: int = 0
    first_claimed_at: datetime | None = None
    token: object = None
    lease_until: datetime | None = None
    finished_at: datetime | None = None
    cancel_requested: bool = False
    signalled: bool = False
    parent: Run | None = None
    replayed_as: Run | None = None
    died: tuple[str, datetime] | None = None  # its dead letter: why and when
    memos: dict[str, Memo] = field(default_factory=dict)

    @property
    def alive(self):
        return self.state in ("pending", "running")

    @property
    def joinable(self):
        """Whether events may still join it: once claimed it belongs to its event for good."""
        return self.state == "pending" and self.first_claimed_at is None

    @property
    def has_attempts_left(self):
        return self.attempt < self.max_attempts


@dataclass(eq=False)
class UsedKey:
    """An idempotency key that was used; it counts until `expires_at`, None: for good."""

    run: Run | None
    first_at: datetime
    expires_at: datetime | None
    while_active: bool
    events: int = 1


@dataclass(eq=False)
class Memo:
    """What is kept of a step: its result when it is done, what it waits for before."""

    kind: str
    state: str
    result: object = None
    wake_at: datetime | None = None
    event_name: str | None = None
    child: Run | None = None
