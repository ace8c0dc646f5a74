-- Seconds until the next pending run of these jobs is due; null when there is none. Those of paused jobs
-- don't count. Goes from one priority to the next, as a claim does.
with recursive priority as (
    (select min(priority) as value from {schema}.job_queue where state = 'pending')
    union all
    select (select min(priority) from {schema}.job_queue where state = 'pending' and priority > last.value)
    from priority as last
    where last.value is not null
)
select extract(epoch from min(run_at) - {schema}.now())::float8
from priority
cross join lateral (
    select run_at
    from {schema}.job_queue
    where state = 'pending' and priority = priority.value and job_id = any(%(job_ids)s)
        and job_id not in (select job_id from {schema}.job_pause)
    order by run_at
    limit 1
) as soonest
