-- End runs with success. Fenced by run id and lease token: a run that is not returned was no longer
-- held, and nothing of it was touched. Locks the runs, those that wait for their end, then the keys they
-- free: each in the order of a send. Of keys that the end of a run frees there may be none, mostly.
--
-- Finds rows by an array of ids, so that the plan that the server keeps reads them by their index whatever
-- it guesses of how many there are.
with done as materialized (
    select *
    from unnest(%(run_ids)s::bigint[], %(lease_tokens)s::uuid[], %(results)s::text[])
        as done (id, lease_token, result)
),
held as materialized (
    select id
    from {schema}.job_queue
    where id = any(array(select id from done))
    order by id
    for no key update
),
completed as (
    update {schema}.job_queue as queue
    set
        state = 'completed',
        finished_at = (select {schema}.now()),
        result = done.result::json,
        lease_token = null,
        lease_until = null
    from done
    where queue.id = any(array(select id from held))
        and queue.id = done.id and queue.lease_token = done.lease_token
    returning queue.id, queue.parent_run_id
),
parent as materialized (
    select id
    from {schema}.job_queue
    where id = any(array(select parent_run_id from completed))
    order by id
    for no key update
),
freed_key as (
    update {schema}.job_idempotency as kept
    set expires_at = 'epoch'  -- free at once, by a clock that is put back, too
    from (
        select job_id, key_digest
        from {schema}.job_idempotency
        where (
            select run_id from {schema}.job_idempotency where while_active order by run_id limit 1
        ) is not null
            and while_active and run_id = any(array(select id from completed))
            and (select count(*) from parent) >= 0  -- the runs that wait are locked first
        order by job_id, key_digest
        for update
    ) as key
    where kept.job_id = key.job_id and kept.key_digest = key.key_digest
)
select id
from completed
where (select count(*) from parent) >= 0  -- whether or not there are keys
