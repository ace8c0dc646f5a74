-- Dead letters, the latest first, with what is needed to understand and to replay them.
select
    dead.run_id, dead.job_id, dead.reason, dead.message, dead.died_at, queue.attempt,
    queue.replayed_as, event.id, event.name, event.data::text, queue.errors
from {schema}.job_dead_letter as dead
join {schema}.job_queue as queue on queue.id = dead.run_id
join {schema}.job_event as event on event.id = dead.event_id
where (%(job_id)s::text is null or dead.job_id = %(job_id)s)
    and (%(reason)s::text is null or dead.reason = %(reason)s)
    and (%(since)s::timestamptz is null or dead.died_at >= %(since)s)
    and (%(within)s::interval is null or dead.died_at >= {schema}.now() - %(within)s)
order by dead.died_at desc, dead.run_id desc
limit %(limit)s
