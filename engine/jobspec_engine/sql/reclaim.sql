-- Make runs ready again whose lease ran out. The attempt is given back, at most %(max_refunds)s times
-- a run: a run that keeps killing its workers uses up its attempts after that, and then goes to the
-- dead letters. Skips rows that somebody else holds. Zero rows: no lease ran out.
with expired as (
    select id
    from {schema}.job_queue
    where state = 'running' and lease_until < {schema}.now()
    order by lease_until
    limit %(limit)s
    for update skip locked
),
reclaimed as (
    update {schema}.job_queue as queue
    set
        state = case when refunds >= %(max_refunds)s and attempt >= max_attempts then 'failed' else 'pending' end,
        finished_at = case when refunds >= %(max_refunds)s and attempt >= max_attempts then {schema}.now() end,
        attempt = case when refunds >= %(max_refunds)s then attempt else attempt - 1 end,
        refunds = least(refunds + 1, %(max_refunds)s),
        run_at = {schema}.now(),
        lease_token = null,
        lease_until = null
    from expired
    where queue.id = expired.id
    returning queue.id, queue.job_id, queue.state, queue.claimed_by
),
dead_letter as (
    insert into {schema}.job_dead_letter (run_id, job_id, reason, message, died_at)
    select
        id, job_id, 'crash-loop',
        format('its workers died or froze on it time and again, last %%s', claimed_by), {schema}.now()
    from reclaimed
    where state = 'failed'
),
freed_key as (
    update {schema}.job_idempotency as kept
    set expires_at = {schema}.now()
    from reclaimed
    where reclaimed.state = 'failed' and kept.run_id = reclaimed.id and kept.while_active
)
select id, state from reclaimed
