"""What each field of a spec file means, as an editor shows it beside the field."""

from __future__ import annotations

from jobspec.spec import models

KEY = "A key: `event.data.<path>` and quoted texts, joined by `+`. "
CONDITION = "A CEL expression over `event` that says yes or no. "

DESCRIPTIONS: dict[type, dict[str, str]] = {
    models.File: {
        "events": "What is known of events, by name. Keys and conditions are checked with it.",
        "jobs": "The jobs: what starts each one, what runs it, and how its runs are controlled.",
    },
    models.Event: {
        "schema": (
            "What the event's data holds: a JSON Schema, the path of a file with one, or the"
            " `module:Class` of a pydantic model (used by `jobspec check --import`)."
        ),
    },
    models.Job: {
        "id": "The name of the job among all jobs. Its runs and keys are kept under it.",
        "triggers": (
            "What starts the job: events and cron schedules, at most ten. `[]` for one that is only"
            " added by its name or invoked."
        ),
        "name": "A name for people. Without it, the id.",
        "handler": "What runs: a Python function as `module:name`.",
        "retries": "How often a run is tried again when it failed, 0 to 20. Without it, 4.",
        "retry": "How long a failed run waits for its next attempt. Without it, as the reference.",
        "idempotency": "One run for each key, however often it is asked for.",
        "debounce": "One run for a burst of events, which carries the latest.",
        "rateLimit": "At most so many runs in a time. Further events are dropped.",
        "throttle": "At most so many starts in a time. Further runs wait.",
        "concurrency": "At most so many runs at once: a number, a limit, or two limits.",
        "priority": "Which runs go ahead of others.",
        "batchEvents": "One run for many events, gathered by number or time.",
        "singleton": "One run at a time.",
        "cancelOn": "Events that cancel runs of this job, at most five.",
        "timeouts": "How long a run may wait and last.",
        "on_missing": (
            "What a field that a key reads and an event lacks does: `skip` leaves it out, as the"
            " reference does; `reject` makes sending such an event an error."
        ),
    },
    models.Trigger: {
        "event": "The name of an event. Every one that is sent starts the job.",
        "if": f"{CONDITION}Events for which it says no start nothing.",
        "cron": "A schedule of five fields, such as `TZ=Europe/Rome 0 4 * * *`.",
        "jitter": "How late a tick may be, at random, up to five minutes.",
        "missed": (
            "What becomes of ticks that came while no worker was there: `skip` (none of them starts"
            " the job), `once` (the latest does), or `all` (each does). Without it, `skip`."
        ),
    },
    models.Idempotency: {
        "key": f"{KEY}Events with the same text make one run.",
        "window": (
            "How long a key counts: `forever`, `while-active` (until its run has ended), or a time"
            " from the first event, such as `24h`, of `1s` or more. Without it, forever."
        ),
    },
    models.Debounce: {
        "period": "How long after each event the run is put off, `1s` to `7d`.",
        "key": f"{KEY}Events with the same text are one burst. Without it, all of them.",
        "timeout": "The longest that a burst is put off after its first event.",
    },
    models.RateLimit: {
        "limit": "How many runs a period may have.",
        "period": "The length of the period, at most a day.",
        "key": f"{KEY}Each text has a limit of its own.",
    },
    models.Throttle: {
        "limit": "How many runs may start in a period.",
        "period": "The length of the period.",
        "burst": "How many more may start at once. Without it, 1.",
        "key": f"{KEY}Each text has a limit of its own.",
    },
    models.Concurrency: {
        "limit": "How many runs may execute at once.",
        "key": f"{KEY}Each text has a limit of its own.",
        "scope": "What counts together: this job (`fn`), the environment, or the account.",
    },
    models.Priority: {
        "run": "A CEL expression for the seconds by which a run goes ahead of others, -600 to 600.",
    },
    models.BatchEvents: {
        "maxSize": "How many events make a full batch, 2 or more.",
        "timeout": "How long events are gathered: `1s` or more, in hours, minutes and seconds.",
        "key": f"{KEY}Events with the same text are gathered together.",
        "if": f"{CONDITION}Events for which it says no run alone.",
    },
    models.Singleton: {
        "mode": "What a second run does: `skip` itself, or `cancel` the first.",
        "key": f"{KEY}One run at a time for each text.",
    },
    models.Cancellation: {
        "event": "The name of the event that cancels.",
        "if": (
            "A CEL expression that picks the runs to cancel: `event` is what started a run,"
            " `async` what cancels it."
        ),
        "match": "A path that must be equal in both events, such as `data.id`.",
        "timeout": "How long after its start a run can still be cancelled.",
    },
    models.Timeouts: {
        "start": "How long a run may wait for its start.",
        "finish": "How long a run may last once it started.",
        "attempt": "How long the handler may take each time it is entered.",
    },
    models.Retry: {
        "policy": "`reference` (its table, 15 s to 2 h), `exponential`, or `fixed`.",
        "delay": "The wait after the first attempt, or after each one, at most `7d`.",
        "max": "The longest wait of an exponential policy, at most `7d`.",
        "factor": "How many times as long each wait is as the one before, 1 to 100.",
        "jitter": "The part of a wait that is random, 0 to 1.",
        "on": "Other policies for classes of errors. The first that fits counts.",
    },
    models.ErrorRetry: {
        "error": "A class of errors as `module:name`, such as `builtins:ValueError`.",
        "policy": "As in `retry`, or `never`: such an error ends the run at once.",
        "delay": "The wait after the first attempt, or after each one, at most `7d`.",
        "max": "The longest wait of an exponential policy, at most `7d`.",
        "factor": "How many times as long each wait is as the one before, 1 to 100.",
        "jitter": "The part of a wait that is random, 0 to 1.",
    },
}
