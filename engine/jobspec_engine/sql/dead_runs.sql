-- The runs of dead letters that were not replayed yet, the oldest first.
select dead.run_id
from {schema}.job_dead_letter as dead
join {schema}.job_queue as queue on queue.id = dead.run_id
where queue.replayed_as is null
    and (%(job_id)s::text is null or dead.job_id = %(job_id)s)
    and (%(reason)s::text is null or dead.reason = %(reason)s)
    and (%(since)s::timestamptz is null or dead.died_at >= %(since)s)
    and (%(within)s::interval is null or dead.died_at >= {schema}.now() - %(within)s)
order by dead.run_id
