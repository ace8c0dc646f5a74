-- Runs that somebody wants to replay, with their events. Locks those that ended without success, in the
-- order of their ids, until the transaction ends: two who replay the same run do so one after the other,
-- and the second sees what the first did. No row for a run: there is none with this id.
--
-- A run that waits hands on what it waits for, and the end of that locks the one that ends, then the one
-- that waits. So does this.
with waited_for as materialized (
    select id
    from {schema}.job_queue
    where id in (
        select child_run_id
        from {schema}.job_step
        where run_id = any(%(run_ids)s) and state = 'waiting' and kind = 'invoke'
    )
    order by id
    for no key update
),
dead as materialized (
    select
        queue.id, queue.job_id, queue.state, queue.max_attempts, queue.replayed_as,
        event.name, event.data::text, event.ts
    from {schema}.job_queue as queue
    join {schema}.job_event as event on event.id = queue.event_id
    where queue.id = any(%(run_ids)s) and queue.state in ('failed', 'cancelled')
        and (select count(*) from waited_for) >= 0
    order by queue.id
    for update of queue
)
select *
from dead
union all
select
    queue.id, queue.job_id, queue.state, queue.max_attempts, queue.replayed_as,
    event.name, event.data::text, event.ts
from {schema}.job_queue as queue
join {schema}.job_event as event on event.id = queue.event_id
where queue.id = any(%(run_ids)s) and queue.state not in ('failed', 'cancelled')
order by id
