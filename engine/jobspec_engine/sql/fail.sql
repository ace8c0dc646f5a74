-- End attempts that failed: the run waits for its retry, or goes to the dead letters where `delay`
-- is null. Fenced by run id and lease token: a run that is not returned was no longer held.
with failed as (
    update {schema}.job_queue as queue
    set
        state = case when attempted.delay is null then 'failed' else 'pending' end,
        run_at = coalesce({schema}.now() + attempted.delay, queue.run_at),
        finished_at = case when attempted.delay is null then {schema}.now() end,
        errors = array_append(queue.errors, attempted.error::json),
        lease_token = null,
        lease_until = null
    from (
        select *
        from unnest(
            %(run_ids)s::bigint[], %(lease_tokens)s::uuid[], %(delays)s::interval[],
            %(reasons)s::text[], %(messages)s::text[], %(errors)s::text[]
        ) as attempted (id, lease_token, delay, reason, message, error)
        order by id
    ) as attempted
    where queue.id = attempted.id and queue.lease_token = attempted.lease_token
    returning queue.id, queue.job_id, queue.state, attempted.reason, attempted.message
),
dead_letter as (
    insert into {schema}.job_dead_letter (run_id, job_id, reason, message, died_at)
    select id, job_id, reason, message, {schema}.now()
    from failed
    where state = 'failed'
),
freed_key as (
    update {schema}.job_idempotency as kept
    set expires_at = {schema}.now()
    from failed
    where failed.state = 'failed' and kept.run_id = failed.id and kept.while_active
)
select id from failed
