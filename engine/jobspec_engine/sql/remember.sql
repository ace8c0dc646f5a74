-- Keep memos of steps. What is settled stays as it is: an event may have come while its wait was
-- given up.
--
-- Fenced by run id and lease token: of a run that is not returned nothing was written. Locks the
-- runs by id, as all do who write memos, then the memos. What is given is one JSON text and not an
-- array a column: a worker writes it in a tenth of the time.
with given as (
    select *
    from json_to_recordset(%(writes)s::json) as given (
        run_id bigint, lease_token uuid, task text, name text, number int, position int, kind text,
        state text, failures int, result text, error text, delay interval, wake_at timestamptz,
        event_name text, event_match text, begun_at timestamptz
    )
),
held as (
    select id, lease_token
    from {schema}.job_queue
    where (id, lease_token) in (select run_id, lease_token from given)
    order by id
    for no key update
)
insert into {schema}.job_step as kept (
    run_id, task, name, number, position, kind, state, failures, result, error,
    wake_at, event_name, event_match, answers_from, recorded_at
)
select
    run_id, task, name, number, position, kind, state, failures, result::json, error::json,
    coalesce(wake_at, {schema}.now() + delay), event_name, event_match::json,
    least(begun_at, {schema}.now()), {schema}.now()
from given
join held on held.id = given.run_id and held.lease_token = given.lease_token
order by run_id, task, name, number
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
