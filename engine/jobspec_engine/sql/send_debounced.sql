-- Keep events and enqueue the runs they start, where each run is debounced and has no idempotency key:
-- all of it or none. With nothing that only others need; `send.sql` does the same for any run.
--
-- Locks events by id, then debounced runs by their keys. Where a step of some run waits for one of these
-- events nothing is written, and `awaited` says so: `send.sql` is for that.
--
-- Always returns one row. `positions` tells which dispatches are of events that were not known,
-- `allotted_run_ids` the run that each would make, `run_ids` the one that stands for it, another where it
-- coalesced, and `runs_at` when that is due now. `watched`: there are workers, which may sleep.
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
-- Run ids are allotted here, in the order given.
dispatch as materialized (
    select in_order.*, nextval(%(run_id_sequence)s::regclass) as run_id
    from (
        select given.*, new_event.ts
        from unnest(
            %(dispatch_event_ids)s::text[], %(job_ids)s::text[], %(max_attempts)s::int[],
            %(debounce_digests)s::bytea[], %(debounce_keys)s::text[],
            %(waits)s::interval[], %(timeouts)s::interval[]
        ) with ordinality as given (
            event_id, job_id, max_attempts, debounce_digest, debounce_key, wait, timeout, position
        )
        join new_event on new_event.id = given.event_id
        order by position
    ) as in_order
),
-- The latest event of this batch with a key stands for the others, under the first one's run id.
enqueued as (
    insert into {schema}.job_queue as kept (
        id, job_id, event_id, event_ts, enqueued_at, run_at, run_by,
        debounce_digest, debounce_key, debounce_mode, events, max_attempts
    )
    select distinct on (job_id, debounce_digest)
        min(run_id) over same_key, job_id, event_id, ts, (select now from start),
        (select now from start) + least(wait, timeout), (select now from start) + timeout,
        debounce_digest, debounce_key, 'debounce', count(*) over same_key, max_attempts
    from dispatch
    window same_key as (partition by job_id, debounce_digest)
    order by job_id, debounce_digest, ts desc, position desc
    on conflict (job_id, debounce_digest)
        where state = 'pending' and first_claimed_at is null and debounce_digest is not null
    -- An older event that arrives late neither replaces nor postpones, nor bounds a run that has no bound.
    do update set
        event_id = case when excluded.event_ts >= kept.event_ts then excluded.event_id else kept.event_id end,
        event_ts = greatest(kept.event_ts, excluded.event_ts),
        run_at = case
            when excluded.event_ts >= kept.event_ts then least(
                greatest(kept.run_at, excluded.run_at), coalesce(kept.run_by, excluded.run_by)
            )
            else kept.run_at
        end,
        run_by = case
            when excluded.event_ts >= kept.event_ts then coalesce(kept.run_by, excluded.run_by)
            else kept.run_by
        end,
        debounce_mode = excluded.debounce_mode,
        max_attempts = excluded.max_attempts,
        events = kept.events + excluded.events
    returning id, job_id, debounce_digest, run_at
),
outcome as materialized (
    select position, event_id, dispatch.job_id, dispatch.run_id as allotted_run_id, enqueued.id as run_id, run_at
    from dispatch
    join enqueued
        on enqueued.job_id = dispatch.job_id and enqueued.debounce_digest = dispatch.debounce_digest
    order by position
),
told as (
    insert into {schema}.job_dispatch (event_id, job_id, outcome, run_id)
    select event_id, job_id, case run_id when allotted_run_id then 'enqueued' else 'coalesced' end, run_id
    from outcome
    -- Only where somebody deleted the event by hand: what is told of events must not fail a send.
    on conflict (event_id, job_id) do update set outcome = excluded.outcome, run_id = excluded.run_id
)
select
    awaited,
    exists (select from {schema}.job_worker) as watched,
    'coalesced' as joined,
    array(select position from outcome) as positions,
    array(select run_id from outcome) as run_ids,
    array(select allotted_run_id from outcome) as allotted_run_ids,
    array(select run_at from outcome) as runs_at
from start
