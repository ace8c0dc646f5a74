-- Seconds until the next pending run of these jobs is due; null when there is none. Those of paused jobs
-- don't count.
select extract(epoch from min(run_at) - {schema}.now())::float8
from (
    select run_at
    from {schema}.job_queue
    where state = 'pending' and job_id = any(%(job_ids)s)
        and job_id not in (select job_id from {schema}.job_pause)
    order by run_at
    limit 1
) as soonest
