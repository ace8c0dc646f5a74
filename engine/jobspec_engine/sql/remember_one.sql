-- Keep one memo, as `remember.sql` does many: what a step writes whose run has no other under way. Without
-- a text to read rows from it takes the server two thirds of the time.
--
-- Fenced by run id and lease token: zero rows mean that the run is not held, and nothing was written. Locks
-- the run, as all do who write memos, then the memo.
with held as (
    select id
    from {schema}.job_queue
    where id = %(run_id)s and lease_token = %(lease_token)s
    for no key update
)
insert into {schema}.job_step as kept (
    run_id, task, name, number, position, kind, state, failures, result, error,
    wake_at, event_name, event_match, answers_from, recorded_at
)
select
    id, %(task)s, %(name)s, %(number)s::int, %(position)s::int, %(kind)s, %(state)s, %(failures)s::int,
    %(result)s::json, %(error)s::json,
    coalesce(%(wake_at)s::timestamptz, {schema}.now() + %(delay)s::interval),
    %(event_name)s, %(event_match)s::json,
    least(%(begun_at)s::timestamptz, {schema}.now()), {schema}.now()
from held
on conflict (run_id, task, name, number) do update set
    (state, failures, result, error, wake_at, answers_from, recorded_at) = (
        select
            excluded.state, excluded.failures, excluded.result, excluded.error, excluded.wake_at,
            case kept.kind when 'wait' then kept.wake_at else kept.answers_from end, excluded.recorded_at
        where kept.state = 'waiting'
        union all
        select
            kept.state, kept.failures, kept.result, kept.error, kept.wake_at, kept.answers_from,
            kept.recorded_at
        where kept.state <> 'waiting'
    ),
    revision = excluded.revision
returning
    run_id, task, name, number, position, kind, state, revision, failures, result::text, error::text,
    wake_at, coalesce(answers_from, recorded_at)
