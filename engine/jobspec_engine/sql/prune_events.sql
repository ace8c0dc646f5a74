-- Look at the `batch` events received behind (`since`, `behind`), and delete those of them that are
-- older than an age and that no run and no dead letter has.
--
-- A run and its event are written by one statement, and no event is given to a run later on, so that
-- one without a run stays so. Skips what somebody holds. Tells the last event that was looked at, nulls
-- where there was none, and how many were deleted.
with seen as (
    select id, received_at
    from {schema}.job_event
    where received_at < {schema}.now() - %(age)s::interval
        and (received_at, id) > (%(since)s::timestamptz, %(behind)s::text)
    order by received_at, id
    limit %(batch)s
),
old as (
    select event.id
    from seen
    cross join lateral (
        select id
        from {schema}.job_event as event
        where event.id = seen.id
            and not exists (select from {schema}.job_queue as queue where queue.event_id = event.id)
            and not exists (select from {schema}.job_dead_letter as dead where dead.event_id = event.id)
        for update of event skip locked
    ) as event
),
outcome as (
    delete from {schema}.job_dispatch
    where event_id = any(array(select id from old))
),
deleted as (
    delete from {schema}.job_event
    where id = any(array(select id from old))
    returning id
),
last as (
    select received_at, id
    from seen
    order by received_at desc, id desc
    limit 1
)
select last.received_at, last.id, (select count(*) from deleted)
from (select) as always
left join last on true
