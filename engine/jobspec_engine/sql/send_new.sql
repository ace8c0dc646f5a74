-- Keep events and enqueue the runs they start, where the events are new: their ids are of the client's own
-- making, and they happen as they arrive; and where no run has a key: all of it or none. What most sends
-- do, with nothing that only others need; `send.sql` does the same for any event.
--
-- Locks nothing that was there before: nobody else has these ids. Where a step of some run waits for one of
-- these events nothing is written, and `awaited` says so: `send.sql` is for that.
--
-- Always returns one row. `run_ids` tells the run of each dispatch, in the order given. `watched`: there are
-- workers, which may sleep.
with start as materialized (
    select
        now, floor(extract(epoch from now) * 1000) as ts,
        exists (
            select
            from {schema}.job_step
            where state = 'waiting' and kind = 'wait' and event_name = any(%(event_names)s::text[])
        ) as awaited
    from {schema}.now() as now
),
new_event as (
    insert into {schema}.job_event (id, name, data, ts, received_at, trace)
    select id, name, data::json, ts, now, trace
    from start
    cross join unnest(
        %(event_ids)s::text[], %(event_names)s::text[], %(event_data)s::text[], %(event_traces)s::text[]
    ) as given (id, name, data, trace)
    where not awaited
),
-- Run ids are allotted in the order given, since runs that are due at the same time are claimed by id.
enqueued as (
    insert into {schema}.job_queue (job_id, event_id, event_ts, enqueued_at, run_at, max_attempts)
    select job_id, event_id, ts, now, now, max_attempts
    from start
    cross join unnest(
        %(dispatch_event_ids)s::text[], %(job_ids)s::text[], %(max_attempts)s::int[]
    ) with ordinality as given (event_id, job_id, max_attempts, position)
    where not awaited
    order by position
    returning id
)
select
    awaited,
    exists (select from {schema}.job_worker) as watched,
    now as run_at,
    array(select id from enqueued) as run_ids
from start
