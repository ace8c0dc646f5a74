-- End runs with success. Fenced by run id and lease token: a run that is not returned was no longer
-- held, and nothing of it was touched.
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
    from completed
    where kept.run_id = completed.id and kept.while_active
)
select id from completed
