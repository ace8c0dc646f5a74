-- Let everybody see that a worker is at work, and for which jobs; forget workers that were not seen
-- for an hour, which died. Locks the worker's own row, and skips dead ones that another worker removes.
with dead as (
    select id
    from {schema}.job_worker
    where seen_at < {schema}.now() - interval '1 hour' and id <> %(worker_id)s
    for update skip locked
),
forgotten as (
    delete from {schema}.job_worker
    where id in (select id from dead)
)
insert into {schema}.job_worker (id, name, job_ids, started_at, seen_at)
values (%(worker_id)s, %(name)s, %(job_ids)s, {schema}.now(), {schema}.now())
on conflict (id) do update set seen_at = excluded.seen_at
