-- Runs that somebody wants to replay, with their events. Locks the runs, in the order of their ids,
-- until the transaction ends: two who replay the same run do so one after the other, and the second
-- sees what the first did. No row for a run: there is none with this id.
select
    queue.id, queue.job_id, queue.state, queue.max_attempts, queue.replayed_as,
    event.name, event.data::text, event.ts
from {schema}.job_queue as queue
join {schema}.job_event as event on event.id = queue.event_id
where queue.id = any(%(run_ids)s)
order by queue.id
for update of queue
