-- End runs with success. Fenced by run id and lease token: a run that is not returned was no longer
-- held, and nothing of it was touched. Locks the runs, those
-- that wait for their end, then the keys they free: each in the order of a send.
with held as (
    select queue.id, done.result
    from unnest(%(run_ids)s::bigint[], %(lease_tokens)s::uuid[], %(results)s::text[])
        as done (id, lease_token, result)
    join {schema}.job_queue as queue on queue.id = done.id and queue.lease_token = done.lease_token
    order by queue.id
    for no key update of queue
),
completed as (
    update {schema}.job_queue as queue
    set
        state = 'completed',
        finished_at = {schema}.now(),
        result = held.result::json,
        lease_token = null,
        lease_until = null
    from held
    where queue.id = held.id
    returning queue.id, queue.parent_run_id
),
parent as materialized (
    select id
    from {schema}.job_queue
    where id in (select parent_run_id from completed)
    order by id
    for no key update
),
freed_key as (
    update {schema}.job_idempotency as kept
    set expires_at = {schema}.now()
    from (
        select job_id, key_digest
        from {schema}.job_idempotency
        where while_active and run_id in (select id from completed)
            and (select count(*) from parent) >= 0  -- the runs that wait are locked first
        order by job_id, key_digest
        for update
    ) as key
    where kept.job_id = key.job_id and kept.key_digest = key.key_digest
)
select id from completed
