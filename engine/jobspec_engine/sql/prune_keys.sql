-- Delete idempotency keys that are free again, at most `batch`. One that counts, for good or until its
-- window or its run has ended, is never touched. Skips keys that a send holds. Zero: there are no more.
with free as (
    select job_id, key_digest
    from {schema}.job_idempotency
    where expires_at <= {schema}.now()
    order by expires_at
    limit %(batch)s
    for update skip locked
),
deleted as (
    delete from {schema}.job_idempotency as kept
    using free
    where kept.job_id = free.job_id and kept.key_digest = free.key_digest
    returning kept.job_id
)
select count(*) from deleted
