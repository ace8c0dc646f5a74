-- Keep events and enqueue the runs they start, where no run is debounced: all of it or none. With nothing
-- that only others need; `send.sql` does the same for any run.
--
-- Locks events by id, then idempotency keys. Where a step of some run waits for one of these events
-- nothing is written, and `awaited` says so: `send.sql` is for that.
--
-- Always returns one row. `positions` tells which dispatches are of events that were not known,
-- `allotted_run_ids` the run that each would make, and `run_ids` the one that stands for it: another
-- where its key was used before. `watched`: there are workers, which may sleep.
with start as materialized (
    select
        {schema}.now() as now,
        exists (
            select
            from {schema}.job_step
            where state = 'waiting' and kind = 'wait' and event_name = any(%(event_names)s::text[])
        ) as awaited
),
new_event as (
    insert into {schema}.job_event (id, name, data, ts, received_at, trace)
    select
        id, name, data::json, coalesce(ts, floor(extract(epoch from (select now from start)) * 1000)),
        (select now from start), trace
    from unnest(
        %(event_ids)s::text[], %(event_names)s::text[], %(event_data)s::text[], %(event_ts)s::bigint[],
        %(event_traces)s::text[]
    ) as given (id, name, data, ts, trace)
    where not (select awaited from start)
    order by id collate "C"
    on conflict (id) do nothing
    returning id, ts
),
-- Run ids are allotted here, so that a key can name its run before the run is written; in the order
-- given, since runs that are due at the same time are claimed by id.
dispatch as materialized (
    select in_order.*, nextval(%(run_id_sequence)s::regclass) as run_id
    from (
        select given.*, new_event.ts
        from unnest(
            %(dispatch_event_ids)s::text[], %(job_ids)s::text[], %(max_attempts)s::int[],
            %(idempotency_digests)s::bytea[], %(idempotency_keys)s::text[],
            %(windows)s::interval[], %(while_active)s::bool[]
        ) with ordinality as given (
            event_id, job_id, max_attempts, key_digest, key, key_window, while_active, position
        )
        join new_event on new_event.id = given.event_id
        order by position
    ) as in_order
),
-- The first event of this batch with a key stands for the others.
used_key as (
    insert into {schema}.job_idempotency as kept (
        job_id, key_digest, key, run_id, first_at, events, expires_at, while_active
    )
    select distinct on (job_id, key_digest)
        job_id, key_digest, key, run_id, (select now from start),
        count(*) over (partition by job_id, key_digest), (select now from start) + key_window, while_active
    from dispatch
    where key_digest is not null
    order by job_id, key_digest, position
    -- A key that is free again is taken as if it were new; a key in use only counts.
    on conflict (job_id, key_digest) do update set
        (run_id, first_at, expires_at, while_active, events) = (
            select
                excluded.run_id, excluded.first_at, excluded.expires_at, excluded.while_active,
                excluded.events
            where kept.expires_at <= excluded.first_at
            union all
            select
                kept.run_id, kept.first_at, kept.expires_at, kept.while_active,
                kept.events + excluded.events
            where (kept.expires_at <= excluded.first_at) is not true
        )
    returning job_id, key_digest, run_id
),
outcome as materialized (
    select
        position, event_id, dispatch.job_id, ts, max_attempts, dispatch.run_id as allotted_run_id,
        coalesce(used_key.run_id, dispatch.run_id) as run_id
    from dispatch
    left join used_key
        on used_key.job_id = dispatch.job_id and used_key.key_digest = dispatch.key_digest
    order by position
),
enqueued as (
    insert into {schema}.job_queue (id, job_id, event_id, event_ts, enqueued_at, run_at, max_attempts)
    select run_id, job_id, event_id, ts, (select now from start), (select now from start), max_attempts
    from outcome
    where run_id = allotted_run_id
),
told as (
    insert into {schema}.job_dispatch (event_id, job_id, outcome, run_id)
    select event_id, job_id, 'duplicate', run_id
    from outcome
    where run_id <> allotted_run_id
    -- Only where somebody deleted the event by hand: what is told of events must not fail a send.
    on conflict (event_id, job_id) do update set outcome = excluded.outcome, run_id = excluded.run_id
)
select
    awaited,
    exists (select from {schema}.job_worker) as watched,
    'duplicate' as joined,
    array(select position from outcome) as positions,
    array(select run_id from outcome) as run_ids,
    array(select allotted_run_id from outcome) as allotted_run_ids,
    array(select now from outcome) as runs_at
from start
