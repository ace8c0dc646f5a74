-- Delete the oldest dead letters of more than an age, at most `batch`: their runs and events become
-- deletable. Skips those that somebody holds. Zero: there are no more.
with old as (
    select run_id
    from {schema}.job_dead_letter
    where died_at < {schema}.now() - %(age)s::interval
    order by died_at
    limit %(batch)s
    for update skip locked
),
deleted as (
    delete from {schema}.job_dead_letter
    where run_id in (select run_id from old)
    returning run_id
)
select count(*) from deleted
