-- Take schedules to send their ticks: the same as `watch_crons` of those that are there, and locked.
--
-- Locks the rows until the transaction ends and skips those that another worker holds: that one sends
-- their ticks. A worker that freezes in between must not keep the others from it: the server ends its
-- session after %(patience)s. Zero rows: others are at it.
select
    kept.job_id, kept.cron_digest, kept.ticked_until, {schema}.now(),
    set_config('idle_in_transaction_session_timeout', %(patience)s::text, true)
from {schema}.job_cron as kept
join unnest(%(job_ids)s::text[], %(digests)s::bytea[]) as given (job_id, cron_digest)
    on given.job_id = kept.job_id and given.cron_digest = kept.cron_digest
where kept.job_id not in (select job_id from {schema}.job_pause)
order by kept.job_id, kept.cron_digest
for update of kept skip locked
