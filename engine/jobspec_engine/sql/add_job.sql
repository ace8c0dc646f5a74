-- Add a run by the function that plain SQL has, too: see 0001_init.sql. Locks one event of its own
-- and, with a key, the run that it joins. Always returns one row.
select outcome, run_id, due
from {schema}.add_job(
    job_id => %(job_id)s::text,
    payload => %(payload)s::json,
    job_key => %(job_key)s::text,
    job_key_mode => %(job_key_mode)s::text,
    run_at => %(run_at)s::timestamptz,
    delay => %(delay)s::interval,
    max_debounce => %(max_debounce)s::interval,
    priority => %(priority)s::int,
    max_attempts => %(max_attempts)s::int,
    wake => %(wake)s::bool
)
