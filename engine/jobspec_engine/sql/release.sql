-- Give runs back, their attempt not used up: those that this worker will not finish are ready at once,
-- in their old place where no handler was entered; those that wait for a step at `wake_at`. One whose
-- step was settled since its claim is ready at once, too: whoever settles a step locks the run first,
-- and leaves the signal in this very row. The wait is cut where the run will have lasted for `finish`.
-- A run that was asked to end is cancelled.
--
-- Fenced by run id and lease token: a run that is not returned was no longer held. Locks the runs,
-- those that wait for their end, then the keys they free: each in the order of a send.
with held as materialized (
    select given.*
    from (
        select *
        from unnest(
            %(run_ids)s::bigint[], %(lease_tokens)s::uuid[],
            %(wakes_at)s::timestamptz[], %(finishes)s::interval[], %(entered)s::bool[]
        ) as given (id, lease_token, wake_at, finish, entered)
        order by id
    ) as given
    cross join lateral (
        select from {schema}.job_queue where id = given.id and lease_token = given.lease_token
        for no key update
    ) as queue
),
released as (
    update {schema}.job_queue as queue
    set
        state = case when cancel_requested_at is null then 'pending' else 'cancelled' end,
        finished_at = case when cancel_requested_at is not null then {schema}.now() end,
        attempt = case when cancel_requested_at is null then attempt - 1 else attempt end,
        passes = case when held.entered then passes else passes - 1 end,
        run_at = case
            when not held.entered then run_at
            when signalled or held.wake_at is null then {schema}.now()
            else least(held.wake_at, first_claimed_at + held.finish)
        end,
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
    from held
    where queue.id = any(array(select id from held)) and queue.id = held.id
    returning held.id, held.lease_token, queue.state, queue.parent_run_id
),
ended as (
    select id, parent_run_id from released where state = 'cancelled'
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
select id, lease_token
from released
where (select count(*) from parent) >= 0  -- whether or not there are keys
