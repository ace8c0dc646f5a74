"""The keys of a job, and what each option does with what a key resolves to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobspec.jobs import CompiledJob
    from jobspec.keys import Key, KeyTemplate


@dataclass(frozen=True, slots=True)
class Effect:
    """What an option does with a key: here, and on the reference where that differs."""

    option: str
    here: str
    reference: str


_TEXT_COUNTS = {
    "debounce": "events of the same text make one run",
    "batchEvents": "events of the same text are gathered",
    "idempotency": "one run for this text",
    "rateLimit": "counted with the runs of this text",
    "singleton": "one run of this text at a time",
}
_NOT_APPLIED = {
    "idempotency": "does not apply: every such event makes a run",
    "rateLimit": "does not apply: no such event is counted",
    "singleton": "does not apply: any number may run at a time",
}
_DEAD_LETTER = "goes to the dead letters with the reason"
_BROKEN_THERE = {
    "debounce": "uses the key `<invalid>`, with every event that fails",
    "batchEvents": "uses the key `<invalid>`, with every event that fails",
    "idempotency": "refuses the run, which is lost",
    "rateLimit": "refuses the run, which is lost",
    "singleton": "drops its guard and runs",
}
OPTIONS = tuple(_TEXT_COUNTS)


def effects(key: Key) -> tuple[Effect, ...]:
    """Return what each option that decides about runs does with a key (keys.jsonl)."""
    return tuple(_effect(option, key) for option in OPTIONS)


def _effect(option: str, key: Key) -> Effect:
    if key.outcome == "error":
        return Effect(option, _DEAD_LETTER, _BROKEN_THERE[option])
    same = _TEXT_COUNTS[option]
    if key.outcome == "absent":
        same = _NOT_APPLIED.get(option, same)
    return Effect(option, same, same)


def keys_of(job: CompiledJob) -> dict[str, KeyTemplate]:
    """Return the keys of a job by the option they belong to, such as `debounce`.

    A limit of concurrency is numbered, as `concurrency[1]`, where there are two.
    """
    one = {
        "idempotency": job.idempotency,
        "debounce": job.debounce,
        "rateLimit": job.rate_limit,
        "throttle": job.throttle,
        "batchEvents": job.batch_events,
        "singleton": job.singleton,
    }
    keys = {name: option.key for name, option in one.items() if option and option.key}
    for number, limit in enumerate(job.concurrency):
        if limit.key:
            keys["concurrency" if len(job.concurrency) == 1 else f"concurrency[{number}]"] = (
                limit.key
            )
    return keys
