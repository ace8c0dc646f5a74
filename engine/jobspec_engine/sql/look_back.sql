-- Settle a step that waits for an event by one that came before it waited: the first that fits, of those
-- since `since` (null: since the run was made), at most %(at_most)s ago. Not the run's own, and none
-- that an earlier wait was given.
--
-- Fenced by run id and lease token: no row if the run is not held. Locks the run, then the memo. Reads
-- the events since then by the order of their arrival, whatever their name.
with held as (
    select id, event_id, enqueued_at
    from {schema}.job_queue
    where id = %(run_id)s and lease_token = %(lease_token)s
    for no key update
),
wait as (
    select memo.*, held.event_id, coalesce(%(since)s, held.enqueued_at) as since
    from held
    join {schema}.job_step as memo
        on memo.run_id = held.id and task = %(task)s and name = %(name)s and number = %(number)s
),
answer as (
    select event.*
    from wait
    join {schema}.job_event as event
        on event.received_at >= greatest(wait.since, {schema}.now() - %(at_most)s::interval)
            and event.received_at < wait.wake_at and event.name = wait.event_name
            and event.id <> wait.event_id and event.id <> all(%(given)s::text[])
    where wait.state = 'waiting' and {schema}.event_matches(event.data::text, wait.event_match)
    order by event.received_at, event.id
    limit 1
),
settled as (
    update {schema}.job_step as memo
    set
        state = 'done',
        result = json_build_object(
            'id', answer.id, 'name', answer.name, 'ts', answer.ts, 'data', answer.data
        ),
        answers_from = answer.received_at,
        revision = default,
        recorded_at = {schema}.now()
    from wait
    cross join answer
    where memo.run_id = wait.run_id and memo.task = wait.task and memo.name = wait.name
        and memo.number = wait.number
    returning memo.*
)
select
    run_id, task, name, number, position, kind, state, revision, failures, result::text, error::text,
    wake_at, coalesce(answers_from, recorded_at)
from settled
union all
select
    run_id, task, name, number, position, kind, state, revision, failures, result::text, error::text,
    wake_at, coalesce(answers_from, recorded_at)
from wait
where not exists (select from settled)
