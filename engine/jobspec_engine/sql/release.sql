-- Give runs back that this worker will not finish: ready at once, their attempt not used up. A run
-- that was asked to end is cancelled.
--
-- Fenced by run id and lease token: a run that is not returned was no longer held. Locks the runs,
-- then the keys they free in the order of a send.
with released as (
    update {schema}.job_queue as queue
    set
        state = case when cancel_requested_at is null then 'pending' else 'cancelled' end,
        finished_at = case when cancel_requested_at is not null then {schema}.now() end,
        attempt = case when cancel_requested_at is null then attempt - 1 else attempt end,
        run_at = {schema}.now(),
        errors = case
            when cancel_requested_at is null then errors
            else array_append(errors, json_build_object(
                'attempt', attempt, 'worker', claimed_by,
                'started_at', claimed_at, 'ended_at', {schema}.now(),
                'error', 'cancelled', 'traceback', null
            ))
        end,
        lease_token = null,
        lease_until = null
    from (
        select id, lease_token
        from unnest(%(run_ids)s::bigint[], %(lease_tokens)s::uuid[]) as held (id, lease_token)
        order by id
    ) as held
    where queue.id = held.id and queue.lease_token = held.lease_token
    returning held.id, held.lease_token, queue.state
),
ended as (
    select id from released where state = 'cancelled'
),
freed_key as (
    update {schema}.job_idempotency as kept
    set expires_at = {schema}.now()
    from (
        select job_id, key_digest
        from {schema}.job_idempotency
        where while_active and run_id in (select id from ended)
        order by job_id, key_digest
        for update
    ) as key
    where kept.job_id = key.job_id and kept.key_digest = key.key_digest
)
select id, lease_token from released
