-- Cancel runs by the function that plain SQL has, too: see 0001_init.sql. Locks the runs, and
-- idempotency keys that name them. No row for a run: there is none with this id.
select run_id, outcome
from {schema}.cancel(%(run_ids)s::bigint[])
