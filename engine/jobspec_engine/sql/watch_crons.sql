-- Where each schedule stands, by the engine's clock. A schedule that is new stands at this moment, so
-- that it does not fire for the past. No row for one that is new, or whose job is paused.
--
-- Locks nothing that is there. A schedule that another worker has just made known stays as it is.
with given as (
    select *
    from unnest(%(job_ids)s::text[], %(digests)s::bytea[], %(crons)s::text[])
        as given (job_id, cron_digest, cron)
),
new_cron as (
    insert into {schema}.job_cron (job_id, cron_digest, cron, ticked_until)
    select job_id, cron_digest, cron, {schema}.now()
    from given
    where not exists (
        select
        from {schema}.job_cron as kept
        where kept.job_id = given.job_id and kept.cron_digest = given.cron_digest
    )
    order by job_id, cron_digest
    on conflict (job_id, cron_digest) do nothing
)
select kept.job_id, kept.cron_digest, kept.ticked_until, {schema}.now()
from {schema}.job_cron as kept
join given on given.job_id = kept.job_id and given.cron_digest = kept.cron_digest
where kept.job_id not in (select job_id from {schema}.job_pause)
