-- Let runs name those that they were replayed as, and give these their priority. Runs in the
-- transaction that locked the ones and wrote the others.
with given as (
    select *
    from unnest(%(run_ids)s::bigint[], %(replays)s::bigint[]) as given (run_id, replay)
),
replayed as (
    update {schema}.job_queue as queue
    set replayed_as = given.replay
    from given
    where queue.id = given.run_id
    returning given.replay, queue.priority
)
update {schema}.job_queue as queue
set priority = replayed.priority
from replayed
where queue.id = replayed.replay and queue.state = 'pending'
