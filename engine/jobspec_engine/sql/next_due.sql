-- Seconds until the next pending run of these jobs is due; null when there is none. Those of paused jobs
-- don't count. Probes the first run of each job at each priority, which a claim calls a lane, up to one
-- that is due.
with recursive lane as (
    select job.id as job_id, first.priority, first.run_at
    from unnest(%(job_ids)s::text[]) as job (id)
    cross join lateral (
        select priority, run_at
        from {schema}.job_queue
        where state = 'pending' and job_id = job.id
        order by priority, run_at
        limit 1
    ) as first
    where id not in (select job_id from {schema}.job_pause)
    union all
    select lane.job_id, next.priority, next.run_at
    from lane
    cross join lateral (
        select priority, run_at
        from {schema}.job_queue
        where state = 'pending' and job_id = lane.job_id and priority > lane.priority
        order by priority, run_at
        limit 1
    ) as next
    where lane.run_at > {schema}.now()
)
select extract(epoch from min(run_at) - {schema}.now())::float8
from lane
