-- The newest runs, for people to look at.
select
    queue.id, queue.job_id, queue.state, queue.attempt, queue.max_attempts, queue.events,
    queue.event_id, queue.enqueued_at, queue.run_at, queue.finished_at,
    queue.result::text, dead.reason, dead.message,
    -- Whole, since `->>` refuses some of what an error may say.
    case when queue.state in ('pending', 'running') then queue.errors[array_upper(queue.errors, 1)] end,
    queue.passes
from {schema}.job_queue as queue
left join {schema}.job_dead_letter as dead on dead.run_id = queue.id
where (%(job_id)s::text is null or queue.job_id = %(job_id)s)
    and (%(state)s::text is null or queue.state = %(state)s)
order by queue.id desc
limit %(limit)s
