-- What became of events that were sent before, for the answer to the one who sends them again: a row
-- for each job that they were dispatched to. Reads runs, and what is kept of dispatches, by event.
-- No row for an event: it triggered nothing. Names its columns, since a sender may not read all of a run.
select
    coalesce(queue.event_id, dispatched.event_id) as event_id,
    coalesce(queue.job_id, dispatched.job_id) as job_id,
    coalesce(
        dispatched.outcome, case when dead.run_id is null then 'enqueued' else 'dead-letter' end
    ) as outcome,
    coalesce(queue.id, dispatched.run_id) as run_id,
    coalesce(queue.run_at, named.run_at) as run_at
from (
    select id, event_id, job_id, run_at
    from {schema}.job_queue
    where event_id = any(%(event_ids)s::text[])
) as queue
full join (
    select event_id, job_id, outcome, run_id
    from {schema}.job_dispatch
    where event_id = any(%(event_ids)s::text[])
) as dispatched on dispatched.event_id = queue.event_id and dispatched.job_id = queue.job_id
left join {schema}.job_dead_letter as dead on dead.run_id = queue.id and dead.reason = 'key-error'
left join {schema}.job_queue as named on queue.id is null and named.id = dispatched.run_id
