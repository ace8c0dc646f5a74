-- Let schedules stand where their ticks have been dealt with. Runs in the transaction that took them
-- and sent the ticks: both are kept or neither.
update {schema}.job_cron as kept
set ticked_until = given.ticked_until
from unnest(%(job_ids)s::text[], %(digests)s::bytea[], %(ticked_until)s::timestamptz[])
    as given (job_id, cron_digest, ticked_until)
where kept.job_id = given.job_id and kept.cron_digest = given.cron_digest
