"""What the tables hold, and what the model says that they should: both as the same plain values."""

from __future__ import annotations

import json

from psycopg.rows import namedtuple_row

QUERIES = {
    "events": "select id, name, data::text, ts, received_at from jobspec.job_event",
    "runs": """
        select
            id, job_id, event_id, event_ts, state, enqueued_at,
            case when finished_at is null then run_at end as run_at, run_by, debounce_key,
            debounce_mode, events, priority, attempt, passes, max_attempts, refunds,
            cardinality(errors) as errors, first_claimed_at, lease_token, lease_until, finished_at,
            cancel_requested_at is not null as cancel_requested,
            signalled and finished_at is null as signalled, parent_run_id,
            replayed_as
        from jobspec.job_queue
    """,
    "keys": """
        select job_id, key, run_id, first_at, expires_at, while_active, events
        from jobspec.job_idempotency
    """,
    "dead letters": "select run_id, job_id, event_id, reason, died_at from jobspec.job_dead_letter",
    "outcomes": "select event_id, job_id, outcome, run_id from jobspec.job_dispatch",
    "memos": """
        select run_id, name, kind, state, wake_at, event_name, child_run_id from jobspec.job_step
    """,
    "standing": "select job_id, cron, ticked_until from jobspec.job_cron",
    "paused": "select job_id from jobspec.job_pause",
}


def held_by_engine(connection):
    """Return all rows of the engine, by table, the runs as named tuples."""
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        return {table: set(cursor.execute(query)) for table, query in QUERIES.items()}


def adopt(model, held):
    """Let the model's new runs have the ids that the engine gave them."""
    ids = {(run.event_id, run.job_id): run.id for run in held["runs"]}
    for run in model.runs:
        if run.id is None:
            run.id = ids.get((run.event.id, run.job_id))


def held_by_model(model):
    """Return the rows that the engine should have."""
    return {
        "events": {
            (e.id, e.name, _text(e.data), e.ts, e.received_at) for e in model.events.values()
        },
        "runs": {_run(run) for run in model.runs},
        "keys": {
            (*at, used.run.id, used.first_at, used.expires_at, used.while_active, used.events)
            for at, used in model.keys.items()
        },
        "dead letters": {
            (run.id, run.job_id, run.event.id, *run.died) for run in model.runs if run.died
        },
        "outcomes": {(*at, outcome, run.id) for at, (outcome, run) in model.outcomes.items()},
        "memos": {
            (r.id, name, m.kind, m.state, m.wake_at, m.event_name, m.child and m.child.id)
            for r in model.runs
            for name, m in r.memos.items()
        },
        "standing": {(*cron, until) for cron, until in model.schedules.standing.items()},
        "paused": {(job_id,) for job_id in model.paused},
    }


def differences(engine, model):
    """Return, by table, what the engine has and what it should have instead."""
    return {
        table: (
            sorted(engine[table] - model[table], key=str),
            sorted(model[table] - engine[table], key=str),
        )
        for table in model
        if engine[table] != model[table]
    }


def _run(run):
    return (
        run.id, run.job_id, run.event.id, run.ts, run.state, run.enqueued_at,
        run.run_at if run.alive else None, run.run_by, run.burst, run.mode, run.events,
        run.priority, run.attempt, run.passes, run.max_attempts, run.refunds,
        run.errors, run.first_claimed_at, run.token,
        run.lease_until, run.finished_at, run.cancel_requested, run.signalled and run.alive,
        run.parent and run.parent.id, run.replayed_as and run.replayed_as.id,
    )  # fmt: skip


def _text(data):
    return json.dumps(data, separators=(",", ":"))
