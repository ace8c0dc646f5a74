-- Extend the leases of runs. A row that somebody holds locked is left for the next time: one of them
-- must not cost the others their leases.
-- A run that is not returned is held no longer: its lease ran out and it was reclaimed. Tells of each
-- other one whether its lease was extended, and whether it was asked to end.
with held as (
    select queue.id, queue.lease_token, queue.cancel_requested_at is not null as cancel_requested
    from unnest(%(run_ids)s::bigint[], %(lease_tokens)s::uuid[]) as given (id, lease_token)
    join {schema}.job_queue as queue on queue.id = given.id and queue.lease_token = given.lease_token
), free as (
    select queue.id, queue.lease_token
    from {schema}.job_queue as queue
    join held on queue.id = held.id and queue.lease_token = held.lease_token
    for update of queue skip locked
), renewed as (
    update {schema}.job_queue as queue
    set lease_until = {schema}.now() + %(lease)s
    from free
    where queue.id = free.id and queue.lease_token = free.lease_token
    returning queue.id
)
select held.id, held.lease_token, held.cancel_requested, held.id in (select id from renewed)
from held
