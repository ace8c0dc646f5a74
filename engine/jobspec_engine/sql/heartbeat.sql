-- Extend the leases of runs. A row that somebody holds locked is left for the next time: one of them
-- must not cost the others their leases.
-- A run that is not returned is held no longer: its lease ran out and it was reclaimed. Tells of each
-- other one whether its lease was extended, and whether it was asked to end.
with held as materialized (
    select given.id, given.lease_token, queue.cancel_requested
    from unnest(%(run_ids)s::bigint[], %(lease_tokens)s::uuid[]) as given (id, lease_token)
    cross join lateral (
        select cancel_requested_at is not null as cancel_requested
        from {schema}.job_queue
        where id = given.id and lease_token = given.lease_token
        limit 1
    ) as queue
), free as (
    select held.id
    from held
    cross join lateral (
        select from {schema}.job_queue where id = held.id and lease_token = held.lease_token
        for update skip locked
    ) as queue
), renewed as (
    update {schema}.job_queue
    set lease_until = (select {schema}.now()) + %(lease)s
    where id = any(array(select id from free))
    returning id
)
select id, lease_token, cancel_requested, id in (select id from renewed)
from held
