"""What each change of a job means for what was sent before it: the engine's behaviour, as data.

A run keeps what was decided when it was sent: its keys, how often it may be tried, until when it is
put off. What a worker decides, it decides by the jobs it was started with.
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import NamedTuple


class Harm(Enum):
    """What a change does to runs and keys that are there already, from least to worst."""

    NONE = "none"
    SPLITS = "splits"  # one run, or one count, becomes two
    RERUNS = "re-runs"  # what has run is run again
    STRANDS = "strands"  # what waits is never run


class Effect(NamedTuple):
    """What a change means, in words, and how much harm it does."""

    harm: Harm
    text: str


def _safe(text: str) -> Effect:
    return Effect(Harm.NONE, text)


LATER = _safe("runs sent from now on")
COUNTED_ANEW = Effect(Harm.SPLITS, "what was counted by the old key is counted no more")
STARTS_AFRESH = Effect(
    Harm.RERUNS, "keys of events that were sent before are not known; sent again, they run again"
)

JOB_ADDED = _safe("events sent from now on start it")
JOB_REMOVED = Effect(Harm.STRANDS, "its pending runs stay in the queue, and no worker claims them")
JOB_RENAMED = Effect(
    Harm.STRANDS, "pending runs keep the old id, and no worker claims them; its keys start afresh"
)
TRIGGER_ADDED = _safe("events and ticks from now on start it")
TRIGGER_REMOVED = _safe("it starts no more runs; those that are pending still run")
HANDLER = _safe("every run entered from now on, retries and woken runs included")
ANY = _safe("from now on")

# By `option`, `option.field`, and what happens to it.
EFFECTS: dict[tuple[str, str], Effect] = {
    ("idempotency", "added"): _safe("keys count from the events sent from now on"),
    ("idempotency", "removed"): Effect(
        Harm.RERUNS, "no key counts any more; events sent again run again"
    ),
    ("idempotency.key", "changed"): STARTS_AFRESH,
    ("debounce", "added"): _safe("events sent from now on are gathered; pending runs are not"),
    ("debounce", "removed"): _safe("a pending burst runs when it is due; later events run at once"),
    ("debounce.key", "changed"): Effect(
        Harm.SPLITS, "a pending burst is split: later events do not join the run that waits"
    ),
    ("debounce.period", "changed"): _safe("events from now on put a burst off by the new period"),
    ("debounce.timeout", "changed"): _safe("bursts that begin from now on"),
    ("rateLimit.key", "changed"): COUNTED_ANEW,
    ("throttle.key", "changed"): COUNTED_ANEW,
    ("concurrency", "changed"): COUNTED_ANEW,
    ("batchEvents.key", "changed"): Effect(
        Harm.SPLITS, "a batch that is being gathered is split: later events do not join it"
    ),
    ("singleton.key", "changed"): Effect(
        Harm.SPLITS, "a run under way by the old key does not hold back one by the new key"
    ),
    ("retries", "changed"): LATER,
    ("priority", "changed"): LATER,
    ("retry", "changed"): _safe("the wait after each failure from now on, of pending runs, too"),
    ("timeouts", "changed"): _safe("attempts from now on, of pending runs, too"),
    ("on_missing", "changed"): _safe("events sent from now on"),
    ("handler", "changed"): HANDLER,
}


def effect_of(option: str, kind: str) -> Effect:
    """Return what it means that an option or a field of one is added, removed or changed."""
    whole = option.partition(".")[0]
    found = EFFECTS.get((option, kind)) or EFFECTS.get((option, "changed"))
    return found or EFFECTS.get((whole, "changed")) or ANY


def effect_of_window(old: timedelta | str, new: timedelta | str) -> Effect:
    """Return what another window of idempotency means: a key keeps the window it was taken with."""
    if new == "forever":
        return _safe("keys taken from now on count for good")
    longer = isinstance(old, timedelta) and isinstance(new, timedelta) and new > old
    if longer:
        return _safe("keys taken from now on count longer")
    return Effect(
        Harm.RERUNS, "keys taken from now on count less long; events sent after that run again"
    )
