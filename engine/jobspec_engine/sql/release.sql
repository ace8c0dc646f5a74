-- Give runs back that this worker will not finish: ready at once, their attempt not used up.
-- Fenced by run id and lease token: a run that is not returned was no longer held.
update {schema}.job_queue as queue
set
    state = 'pending',
    attempt = attempt - 1,
    run_at = {schema}.now(),
    lease_token = null,
    lease_until = null
from (
    select id, lease_token
    from unnest(%(run_ids)s::bigint[], %(lease_tokens)s::uuid[]) as held (id, lease_token)
    order by id
) as held
where queue.id = held.id and queue.lease_token = held.lease_token
returning held.id, held.lease_token
