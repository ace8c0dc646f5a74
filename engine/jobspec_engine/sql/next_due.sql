-- Seconds until the next pending run of these jobs is due; null when there is none. Those of paused jobs
-- don't count. Probes the first run of each job at each priority, which a claim calls a lane.
with recursive lane as (
    select
        id as job_id,
        (select min(priority) from {schema}.job_queue where state = 'pending' and job_id = job.id) as priority
    from unnest(%(job_ids)s::text[]) as job (id)
    where id not in (select job_id from {schema}.job_pause)
    union all
    select
        job_id,
        (
            select min(priority)
            from {schema}.job_queue
            where state = 'pending' and job_id = lane.job_id and priority > lane.priority
        )
    from lane
    where priority is not null
)
select extract(epoch from min(soonest.run_at) - {schema}.now())::float8
from lane
cross join lateral (
    select run_at
    from {schema}.job_queue
    where state = 'pending' and job_id = lane.job_id and priority = lane.priority
    order by run_at
    limit 1
) as soonest
