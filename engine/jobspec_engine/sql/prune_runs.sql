-- Look at the `batch` runs behind run `behind`, and delete those of them that ended longer ago than an
-- age and have no dead letter; their memos go with them.
--
-- Goes by the primary key, so that the queue needs no index for this: a run that was enqueued within
-- the age can not have ended before it, and the first batch of such runs alone is the last. Skips what
-- somebody holds. Tells the last run that was looked at, null where that was the last batch, and how
-- many were deleted.
with seen as (
    select id, enqueued_at, finished_at
    from {schema}.job_queue
    where id > %(behind)s
    order by id
    limit %(batch)s
),
old as (
    select queue.id
    from seen
    cross join lateral (
        select id
        from {schema}.job_queue
        where id = seen.id
            and not exists (select from {schema}.job_dead_letter as dead where dead.run_id = seen.id)
        for update skip locked
    ) as queue
    where seen.finished_at < {schema}.now() - %(age)s::interval
),
deleted as (
    delete from {schema}.job_queue
    where id = any(array(select id from old))
    returning id
)
select
    (select max(id) from seen having min(enqueued_at) < {schema}.now() - %(age)s::interval),
    (select count(*) from deleted)
