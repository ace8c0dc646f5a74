-- Let idempotency keys name the run that their event coalesced into, where it was not one of its own.
-- Runs in the transaction of the send that took the keys, which holds their rows already.
update {schema}.job_idempotency as kept
set run_id = coalesced.run_id
from unnest(%(job_ids)s::text[], %(digests)s::bytea[], %(run_ids)s::bigint[])
    as coalesced (job_id, digest, run_id)
where kept.job_id = coalesced.job_id and kept.key_digest = coalesced.digest
