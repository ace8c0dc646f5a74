-- Extend the leases of runs. Waits for whoever holds one of the rows.
-- A run that is not returned is held no longer: its lease ran out and it was reclaimed. Tells of each
-- other one whether it was asked to end.
update {schema}.job_queue as queue
set lease_until = {schema}.now() + %(lease)s
from (
    select id, lease_token
    from unnest(%(run_ids)s::bigint[], %(lease_tokens)s::uuid[]) as held (id, lease_token)
    order by id
) as held
where queue.id = held.id and queue.lease_token = held.lease_token
returning held.id, held.lease_token, queue.cancel_requested_at is not null
