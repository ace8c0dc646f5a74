-- The runs that events made which were sent before, for the answer to the one who sent them again.
-- No row for an event: it triggered nothing, or became a part of another event's run.
select event_id, job_id, id as run_id, run_at
from {schema}.job_queue
where event_id = any(%(event_ids)s)
