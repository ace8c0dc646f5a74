-- Let runs name those that they were replayed as, and give these their priority. A run that died
-- since its steps changed hands on its memos, to go on from there, the runs that it waits for, and the id
-- of its event, which it may have given others as a key.
-- Runs in the transaction that locked the ones and wrote the others.
with given as (
    select *
    from unnest(%(run_ids)s::bigint[], %(replays)s::bigint[]) as given (run_id, replay)
),
replayed as (
    update {schema}.job_queue as queue
    set replayed_as = given.replay
    from given
    where queue.id = given.run_id
    returning given.run_id, given.replay, queue.priority
),
drifted as (
    select replayed.run_id, replayed.replay
    from replayed
    join {schema}.job_dead_letter as dead on dead.run_id = replayed.run_id
    where dead.reason = 'step-drift'
),
event as (
    update {schema}.job_event as event
    set stands_for = coalesce(own.stands_for, own.id)
    from drifted
    join {schema}.job_queue as dead on dead.id = drifted.run_id
    join {schema}.job_event as own on own.id = dead.event_id
    join {schema}.job_queue as again on again.id = drifted.replay
    where event.id = again.event_id
),
handed_on as (
    insert into {schema}.job_step (
        run_id, task, name, number, position, kind, state, failures, result, error,
        wake_at, event_name, event_match, child_run_id, answers_from, recorded_at
    )
    select
        replay, task, name, number, position, kind, state, failures, result, error,
        wake_at, event_name, event_match, child_run_id, answers_from, recorded_at
    from drifted
    join {schema}.job_step as memo on memo.run_id = drifted.run_id
    on conflict (run_id, task, name, number) do nothing
),
waited_for as (
    update {schema}.job_queue as child
    set parent_run_id = replay
    from drifted
    where child.parent_run_id = drifted.run_id and child.state in ('pending', 'running')
        and child.id in (select child_run_id from {schema}.job_step as memo where memo.run_id = drifted.run_id)
)
update {schema}.job_queue as queue
set priority = replayed.priority
from replayed
where queue.id = replayed.replay and queue.state = 'pending'
