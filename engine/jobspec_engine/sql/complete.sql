-- End runs with success. Fenced by run id and lease token: a run that is not returned was no longer
-- held, and nothing of it was touched. Locks the runs, then the keys they free in the order of a send.
with completed as (
    update {schema}.job_queue as queue
    set
        state = 'completed',
        finished_at = {schema}.now(),
        result = done.result::json,
        lease_token = null,
        lease_until = null
    from (
        select id, lease_token, result
        from unnest(%(run_ids)s::bigint[], %(lease_tokens)s::uuid[], %(results)s::text[])
            as done (id, lease_token, result)
        order by id
    ) as done
    where queue.id = done.id and queue.lease_token = done.lease_token
    returning queue.id
),
freed_key as (
    update {schema}.job_idempotency as kept
    set expires_at = {schema}.now()
    from (
        select job_id, key_digest
        from {schema}.job_idempotency
        where while_active and run_id in (select id from completed)
        order by job_id, key_digest
        for update
    ) as key
    where kept.job_id = key.job_id and kept.key_digest = key.key_digest
)
select id from completed
