-- Figures about a schema: the name of the metric, the job and the kind it is about, and its value.
--
-- Bounded: counts at most %(limit)s rows of each sort, by the indexes of what is pending, what is running
-- and what died; of runs that have ended it looks at the newest ones. The sizes of what is never counted
-- are the planner's estimates.
with pending as materialized (
    select job_id, run_at
    from {schema}.job_queue
    where state = 'pending'
    limit %(limit)s
),
running as materialized (
    select job_id, lease_until
    from {schema}.job_queue
    where state = 'running'
    limit %(limit)s
),
ended as materialized (
    select job_id, state
    from (select job_id, state from {schema}.job_queue order by id desc limit %(limit)s) as newest
    where state not in ('pending', 'running')
),
dead as materialized (
    select job_id, reason
    from {schema}.job_dead_letter
    order by died_at desc
    limit %(limit)s
)
select 'runs' as metric, job_id as job, 'pending' as kind, count(*)::float8 as value
from pending group by job_id
union all
select 'runs', job_id, 'running', count(*) from running group by job_id
union all
select 'runs', job_id, state, count(*) from ended group by job_id, state
union all
select 'due_runs', job_id, null, count(*) from pending where run_at <= {schema}.now() group by job_id
union all
select 'oldest_due_seconds', job_id, null, extract(epoch from {schema}.now() - min(run_at))
from pending where run_at <= {schema}.now() group by job_id
union all
select 'expired_leases', null, null, count(*) from running where lease_until < {schema}.now()
union all
select 'dead_letters', job_id, reason, count(*) from dead group by job_id, reason
union all
select 'paused', job_id, null, 1 from {schema}.job_pause
union all
select 'workers', null, null, count(*)
from {schema}.job_worker where seen_at >= {schema}.now() - interval '1 minute'
union all
select 'rows', null, relname, reltuples
from pg_class
where relnamespace = (select oid from pg_namespace where nspname = %(schema)s)
    and relkind = 'r' and reltuples >= 0
order by metric, job, kind
