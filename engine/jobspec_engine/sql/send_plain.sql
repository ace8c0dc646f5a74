-- Keep events and enqueue the runs they start, where no run has a key: all of it or none. What most
-- sends do, with nothing that only others need; `send.sql` does the same for any run.
--
-- Locks events, in the order of their ids, and nothing else that was there before. Where a step of some
-- run waits for one of these events nothing is written, and `awaited` says so: `send.sql` is for that.
--
-- Always returns one row. `positions` tells which dispatches made a run, and `run_ids` which one; those
-- of events that were known are not among them. `watched`: there are workers, which may sleep.
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
-- Run ids are allotted in the order given, since runs that are due at the same time are claimed by id.
dispatch as materialized (
    select in_order.*, nextval(%(run_id_sequence)s::regclass) as run_id
    from (
        select given.*, new_event.ts
        from unnest(
            %(dispatch_event_ids)s::text[], %(job_ids)s::text[], %(max_attempts)s::int[]
        ) with ordinality as given (event_id, job_id, max_attempts, position)
        join new_event on new_event.id = given.event_id
        order by position
    ) as in_order
),
enqueued as (
    insert into {schema}.job_queue (id, job_id, event_id, event_ts, enqueued_at, run_at, max_attempts)
    select
        run_id, job_id, event_id, ts, (select now from start), (select now from start), max_attempts
    from dispatch
)
select
    awaited,
    exists (select from {schema}.job_worker) as watched,
    now as run_at,
    array(select position from dispatch) as positions,
    array(select run_id from dispatch) as run_ids
from start
