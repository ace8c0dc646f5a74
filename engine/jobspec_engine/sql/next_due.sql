-- Seconds until the next pending run of these jobs is due; null when there is none.
select extract(epoch from min(run_at) - {schema}.now())::float8
from (
    select run_at
    from {schema}.job_queue
    where state = 'pending' and job_id = any(%(job_ids)s)
    order by run_at
    limit 1
) as soonest
