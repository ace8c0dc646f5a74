-- End attempts that failed: the run waits for its retry, or has ended where there is none: no `delay`
-- and no `retry_at`. The wait is cut where the run will have lasted for `finish`, to end it then.
-- A run that was asked to end is cancelled; of the others that end each becomes a dead letter.
--
-- Fenced by run id and lease token: a run that is not returned was no longer held. Locks the runs,
-- those that wait for their end, then the keys they free: each in the order of a send.
with held as materialized (
    select
        attempted.*,
        case
            when retry_at is null then {schema}.now() + delay
            -- A handler may name any time, also one that no client can read.
            else least(greatest(retry_at, {schema}.now()), {schema}.now() + interval '366 days')
        end as next_at
    from (
        select *
        from unnest(
            %(run_ids)s::bigint[], %(lease_tokens)s::uuid[], %(delays)s::interval[],
            %(reasons)s::text[], %(messages)s::text[], %(errors)s::text[], %(tracebacks)s::text[],
            %(retries_at)s::timestamptz[], %(finishes)s::interval[]
        ) as attempted (
            id, lease_token, delay, reason, message, error, traceback, retry_at, finish
        )
        order by id
    ) as attempted
    cross join lateral (
        select from {schema}.job_queue where id = attempted.id and lease_token = attempted.lease_token
        for no key update
    ) as queue
),
failed as (
    update {schema}.job_queue as queue
    set
        state = case
            when queue.cancel_requested_at is not null then 'cancelled'
            when attempted.next_at is not null then 'pending'
            when attempted.reason in ('start-timeout', 'finish-timeout') then 'cancelled'
            else 'failed'
        end,
        run_at = case
            when attempted.next_at is null then queue.run_at
            else least(attempted.next_at, queue.first_claimed_at + attempted.finish)
        end,
        finished_at = case
            when attempted.next_at is null or queue.cancel_requested_at is not null then {schema}.now()
        end,
        passes = 0,
        errors = array_append(queue.errors, json_build_object(
            'attempt', queue.attempt, 'worker', queue.claimed_by,
            'started_at', queue.claimed_at, 'ended_at', {schema}.now(),
            'error', attempted.error::json, 'traceback', attempted.traceback::json
        )),
        lease_token = null,
        lease_until = null
    from held as attempted
    where queue.id = any(array(select id from held)) and queue.id = attempted.id
    returning
        queue.id, queue.job_id, queue.event_id, queue.state, queue.cancel_requested_at,
        queue.parent_run_id, attempted.reason, attempted.message
),
dead_letter as (
    insert into {schema}.job_dead_letter (run_id, job_id, event_id, reason, message, died_at)
    select id, job_id, event_id, reason, message, {schema}.now()
    from failed
    where state <> 'pending' and cancel_requested_at is null
),
ended as (
    select id, parent_run_id from failed where state <> 'pending'
),
parent as materialized (
    select id
    from {schema}.job_queue
    where id = any(array(select parent_run_id from ended))
    order by id
    for no key update
),
freed_key as (
    update {schema}.job_idempotency as kept
    set expires_at = 'epoch'  -- free at once, by a clock that is put back, too
    from (
        select job_id, key_digest
        from {schema}.job_idempotency
        where while_active and run_id = any(array(select id from ended))
            and (select count(*) from parent) >= 0  -- the runs that wait are locked first
        order by job_id, key_digest
        for update
    ) as key
    where kept.job_id = key.job_id and kept.key_digest = key.key_digest
)
select id
from failed
where (select count(*) from parent) >= 0  -- whether or not there are keys
