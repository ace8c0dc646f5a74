-- Let runs name those that they were replayed as, and give these their priority. A run that died
-- since its steps changed hands on its memos, to go on from there, and the runs that it waits for.
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
handed_on as (
    insert into {schema}.job_step (
        run_id, task, name, number, position, kind, state, failures, result, error,
        wake_at, event_name, event_match, child_run_id, recorded_at
    )
    select
        replay, task, name, number, position, kind, state, failures, result, error,
        wake_at, event_name, event_match, child_run_id, recorded_at
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
