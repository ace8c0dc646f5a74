-- Take runs that are due, oldest first, under a lease.
--
-- Locks the rows it takes and skips those that somebody else holds. A run that a send has just put
-- off is looked at again in its new version, and left. Zero rows: nothing is due.
with due as (
    select id
    from {schema}.job_queue
    where state = 'pending' and run_at <= {schema}.now() and job_id = any(%(job_ids)s)
    order by run_at, id
    limit %(limit)s
    for update skip locked
),
claimed as (
    update {schema}.job_queue as queue
    set
        state = 'running',
        attempt = attempt + 1,
        first_claimed_at = coalesce(first_claimed_at, {schema}.now()),
        claimed_by = %(worker)s,
        lease_token = %(lease_token)s,
        lease_until = {schema}.now() + %(lease)s
    from due
    where queue.id = due.id
    returning queue.id, queue.job_id, queue.event_id, queue.attempt, queue.max_attempts, queue.run_at
)
select
    claimed.id, claimed.job_id, claimed.attempt, claimed.max_attempts,
    event.id as event_id, event.name, event.data::text, event.ts
from claimed
join {schema}.job_event as event on event.id = claimed.event_id
order by claimed.run_at, claimed.id
