"""Events as they are sent, and what became of them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  pydantic reads it, for the memo of a step
from typing import TYPE_CHECKING, Literal, NamedTuple

from jobspec import EventError
from jobspec_engine.arguments import require_text
from jobspec_engine.payload import encode, is_object
from jobspec_engine.telemetry import carried

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Outcome = Literal["enqueued", "duplicate", "coalesced", "dead-letter"]

MAX_ID_BYTES = 255
MAX_NAME_BYTES = 1024

# The digit of a UUID whose first two bits are 1 and 0, by one that is left to chance.
_VARIANTS = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    `data` is a JSON object. `id` deduplicates the event itself: an id that was sent before starts
    nothing again; without one the event gets its own. `ts` says when it happened, in milliseconds
    since 1970; without it that is the moment it arrives.
    """

    name: str
    data: Mapping[str, object]
    id: str | None = None
    ts: int | None = None


class Encoded(NamedTuple):
    """An event checked and ready for the database: its id set, its data and its trace JSON text."""

    id: str
    name: str
    data: str
    ts: int | None
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What became of an event for one job it triggers.

    | outcome | what happened | `run_id` | `run_at` |
    |---|---|---|---|
    | `enqueued` | it made a run | that run | when it is due |
    | `duplicate` | its key, or the event itself, was used before | the run of then | |
    | `coalesced` | it joined a pending debounced run | that run | when that is due now |
    | `dead-letter` | its key can't be resolved | the dead run | |

    `reason` says why, for a `dead-letter`, and for want of which field a run has no idempotency
    key, which makes no duplicates then. `run_id` is None only for a `duplicate` of an event that
    made no run of this job, or one that has been pruned.
    """

    job_id: str
    outcome: Outcome
    run_id: int | None
    run_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of an event: one entry for each job that it triggers."""

    event_id: str
    jobs: tuple[Dispatched, ...]


def encode_event(
    event: Event, event_id: str | None = None, trace: Callable[[], str | None] = carried
) -> Encoded:
    """Check an event and make it ready for the database, under `event_id` if it has no id.

    `trace` tells in which it is sent.
    Raises `EventError` for what can't be kept: a name or an id that is empty, too long or holds
    U+0000 or half a surrogate pair, data that is not a JSON object; `TypeError` for no `Event`.
    """
    if not isinstance(event, Event):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"an event must be an Event(name, data), not {type(event).__name__}")
    if not is_object(event.data):
        raise EventError(f"event data must be an object, not {type(event.data).__name__}")
    if event.ts is not None and (type(event.ts) is not int or not 0 <= event.ts < 1 << 63):
        raise EventError(
            "event ts must be milliseconds since 1970, a whole number from 0 to 2^63-1"
        )
    return Encoded(
        event_id or new_id()
        if event.id is None
        else require_text("event id", event.id, max_bytes=MAX_ID_BYTES, error=EventError),
        require_text("event name", event.name, max_bytes=MAX_NAME_BYTES, error=EventError),
        encode(event.data, "event.data", EventError),
        event.ts,
        trace(),
    )


def new_id() -> str:
    """Return a new event id: a version 7 UUID, whose time order keeps index pages full."""
    return new_ids(1)[0]


def new_ids(count: int) -> list[str]:
    """Return some new event ids, in their order: so each is written behind the last in an index."""
    at = f"{time.time_ns() // 1_000_000:012x}"
    begin = f"{at[:8]}-{at[8:]}-7"
    chance = os.urandom(10 * count).hex()
    return sorted(
        f"{begin}{chance[i : i + 3]}-{_VARIANTS[chance[i + 3]]}{chance[i + 4 : i + 7]}"
        f"-{chance[i + 8 : i + 20]}"
        for i in range(0, 20 * count, 20)
    )
