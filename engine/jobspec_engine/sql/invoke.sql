-- Start a run of another job, and keep a memo that waits for its end, which settles it by a trigger.
--
-- Fenced by run id and lease token: no row if the run is not held; then nothing was written. A memo
-- that is there already stays, and is returned: the statement may be executed again. Locks the run.
with held as (
    select id
    from {schema}.job_queue
    where id = %(run_id)s and lease_token = %(lease_token)s
    for no key update
),
known as (
    select memo.*
    from held
    join {schema}.job_step as memo
        on memo.run_id = held.id and task = %(task)s and name = %(name)s and number = %(number)s
),
event as (
    insert into {schema}.job_event (id, name, data, ts, received_at, trace)
    select
        %(event_id)s, 'jobspec/job.invoked', %(data)s::json,
        floor(extract(epoch from {schema}.now()) * 1000), {schema}.now(), %(trace)s
    from held
    where not exists (select from known)
    returning id, ts
),
child as (
    insert into {schema}.job_queue (
        job_id, event_id, event_ts, enqueued_at, run_at, max_attempts, parent_run_id
    )
    select %(job_id)s, event.id, event.ts, {schema}.now(), {schema}.now(), %(max_attempts)s, held.id
    from event
    cross join held
    returning id, parent_run_id
),
memo as (
    insert into {schema}.job_step (
        run_id, task, name, number, position, kind, state, child_run_id, answers_from, recorded_at
    )
    select
        parent_run_id, %(task)s, %(name)s, %(number)s, %(position)s, 'invoke', 'waiting', id,
        {schema}.now(), {schema}.now()
    from child
    returning *
)
select
    run_id, task, name, number, position, kind, state, revision, failures, result::text, error::text,
    wake_at, coalesce(answers_from, recorded_at)
from memo
union all
select
    run_id, task, name, number, position, kind, state, revision, failures, result::text, error::text,
    wake_at, coalesce(answers_from, recorded_at)
from known
