-- Make runs ready again whose lease ran out. The attempt is given back, at most %(max_refunds)s times
-- a run: a run that keeps killing its workers uses up its attempts after that, and then goes to the
-- dead letters. A run that was asked to end is cancelled.
--
-- Skips rows that somebody else holds; locks the runs that wait for an end, then the keys that are
-- freed: each in the order of a send. Zero rows: no lease ran out.
with expired as (
    select
        id,
        case
            when cancel_requested_at is not null then 'cancelled'
            when refunds >= %(max_refunds)s and attempt >= max_attempts then 'failed'
            else 'pending'
        end as next_state
    from {schema}.job_queue
    where state = 'running' and lease_until < {schema}.now()
    order by lease_until
    limit %(limit)s
    for update skip locked
),
reclaimed as (
    update {schema}.job_queue as queue
    set
        state = next_state,
        finished_at = case when next_state <> 'pending' then {schema}.now() end,
        attempt = case
            when next_state = 'cancelled' or refunds >= %(max_refunds)s then attempt
            else attempt - 1
        end,
        passes = case when refunds >= %(max_refunds)s then 0 else passes end,
        refunds = least(refunds + 1, %(max_refunds)s),
        run_at = {schema}.now(),
        errors = array_append(errors, json_build_object(
            'attempt', attempt, 'worker', claimed_by,
            'started_at', claimed_at, 'ended_at', {schema}.now(),
            'error', 'the worker died or froze: its lease ran out', 'traceback', null
        )),
        lease_token = null,
        lease_until = null
    from expired
    where queue.id = expired.id
    returning
        queue.id, queue.job_id, queue.event_id, queue.state, queue.claimed_by, queue.parent_run_id
),
dead_letter as (
    insert into {schema}.job_dead_letter (run_id, job_id, event_id, reason, message, died_at)
    select
        id, job_id, event_id, 'crash-loop',
        format('its workers died or froze on it time and again, last %%s', claimed_by), {schema}.now()
    from reclaimed
    where state = 'failed'
),
ended as (
    select id, parent_run_id from reclaimed where state <> 'pending'
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
select id, state
from reclaimed
where (select count(*) from parent) >= 0  -- whether or not there are keys
