"""What is left when something broke, or met something: recovered, and as one value to compare."""

from __future__ import annotations

from collections import Counter
from uuid import uuid4

from enginekit import until
from jobspec_engine.calls import fetch
from jobspec_engine.rows import Completion
from proof.pair import LEASE, MAX_REFUNDS, STEPS

# All that must be the same, wherever the line broke; an event whose id is drawn goes by what it is.
# Calls of `add_job` have no id: a second one with the same key joins the first, and makes another
# event.
SETTLED = """
    with event as (
        select case when id ~ '^[0-9a-f]{8}-' then name || data else id end as alias, *
        from jobspec.job_event
    )
    select 'run', job_id, alias, state,
        case name when 'jobspec/job.added' then 1 else events end, replayed_as is not null
    from jobspec.job_queue join event on event.id = event_id
    union all
    select 'event', alias, name, '', 0, false from event where name <> 'jobspec/job.added'
    union all
    select 'key', job_id, key, '', events, expires_at is null from jobspec.job_idempotency
    union all
    select 'dead letter', job_id, event_id, reason, 0, false from jobspec.job_dead_letter
    union all
    select 'outcome', job_id, alias, outcome, 0, false
    from jobspec.job_dispatch join event on event.id = event_id where name <> 'jobspec/job.added'
    union all
    select 'memo', name, kind, state, number, result is null from jobspec.job_step
    union all
    select 'schedule', job_id, '', '', 0, false from jobspec.job_cron
    union all
    select 'pause', job_id, '', '', 0, false from jobspec.job_pause
"""

# Sessions that the server has not yet found to be lost hold their locks until then.
AT_WORK = """
    select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
"""


def others_ended(connection):
    """Wait until nobody else is at work."""
    until(lambda: connection.execute(AT_WORK).fetchone() == (0,), "the end of the others")


def recover(connection, clock, job_ids):
    """Let leases run out, and another worker do what is left, as often as it takes."""
    others_ended(connection)
    for _ in range(2):
        clock.advance(10 * LEASE)
        fetch(connection, STEPS.reclaim(MAX_REFUNDS, 1000))
        token = uuid4()
        rows = fetch(connection, STEPS.claim(job_ids, 1000, LEASE, token, "w"))
        fetch(connection, STEPS.complete([Completion(row.run_id, token, "1") for row in rows]))


def settled(connection):
    """Return what is kept, each row as often as it is there."""
    return Counter(connection.execute(SETTLED).fetchall())


def unfinished(found):
    """Return what recovery did not bring to an end, where nothing is paused."""
    paused = {row[1] for row in found if row[0] == "pause"}
    return [
        row
        for row in found
        if row[0] == "run" and row[3] in ("pending", "running") and row[1] not in paused
    ]
