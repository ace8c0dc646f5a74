-- Take runs that are due under a lease: by priority, then the longest due first. None of a paused job.
--
-- Locks the rows it takes and skips those that somebody else holds. A run that a send has just put
-- off is looked at again in its new version, and left. So is one, due all the same, that a send has
-- just given an event newer than this statement's snapshot: the join, made before the lock, no
-- longer holds. The next claim takes it. Zero rows: nothing is due.
--
-- Goes from each priority that is there to the next one, by a probe of the index: a range of run_at over
-- all priorities reads the runs of later, too, on servers before 18. What is joined laterally comes in the
-- order of the priorities and is locked row by row, up to the limit and no further.
with recursive priority as (
    (select min(priority) as value from {schema}.job_queue where state = 'pending')
    union all
    select (select min(priority) from {schema}.job_queue where state = 'pending' and priority > last.value)
    from priority as last
    where last.value is not null
),
due as (
    select due.*
    from (select value from priority where value is not null order by value) as priority
    cross join lateral (
        select
            queue.id, queue.run_at, queue.first_claimed_at, event.id as event_id, event.name, event.data,
            event.ts, event.trace
        from {schema}.job_queue as queue
        join {schema}.job_event as event on event.id = queue.event_id
        where queue.state = 'pending' and queue.priority = priority.value
            and queue.run_at <= {schema}.now() and queue.job_id = any(%(job_ids)s)
            and queue.job_id not in (select job_id from {schema}.job_pause)
        order by queue.run_at, queue.id
        limit %(limit)s
        for update of queue skip locked
    ) as due
    limit %(limit)s
),
claimed as (
    update {schema}.job_queue as queue
    set
        state = 'running',
        attempt = attempt + 1,
        passes = passes + 1,
        signalled = false,
        first_claimed_at = coalesce(queue.first_claimed_at, {schema}.now()),
        claimed_by = %(worker)s,
        claimed_at = {schema}.now(),
        lease_token = %(lease_token)s,
        lease_until = {schema}.now() + %(lease)s
    from due
    where queue.id = due.id
    returning
        queue.id, queue.job_id, queue.attempt, queue.max_attempts, queue.priority, queue.run_at,
        due.event_id, due.name, due.data, due.ts,
        case when due.first_claimed_at is null then {schema}.now() - due.run_at end as waited,
        {schema}.now() - coalesce(due.first_claimed_at, {schema}.now()) as ran,
        queue.passes, due.trace
)
select id, job_id, attempt, max_attempts, event_id, name, data::text, ts, waited, ran, passes, trace
from claimed
order by priority, run_at, id
