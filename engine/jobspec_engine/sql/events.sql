-- The events received last, and what became of each for every job it was dispatched to: by the run that
-- has it now, or else by what is kept of its dispatch. Reads the index of job_event by time, and both
-- others by event.
select
    event.id, event.name, event.received_at, event.ts, event.data::text,
    array(
        select json_build_object(
            'job', coalesce(queue.job_id, dispatched.job_id),
            'outcome', coalesce(
                dispatched.outcome, case dead.reason when 'key-error' then 'dead-letter' else 'enqueued' end
            ),
            'run', coalesce(queue.id, dispatched.run_id),
            'state', coalesce(queue.state, named.state)
        )
        from (select * from {schema}.job_queue as queue where queue.event_id = event.id) as queue
        full join (
            select * from {schema}.job_dispatch as dispatched where dispatched.event_id = event.id
        ) as dispatched on dispatched.job_id = queue.job_id
        left join {schema}.job_dead_letter as dead on dead.run_id = queue.id
        left join {schema}.job_queue as named on named.id = dispatched.run_id
        order by coalesce(queue.job_id, dispatched.job_id)
    )
from {schema}.job_event as event
where (%(name)s::text is null or event.name = %(name)s)
    and (%(since)s::timestamptz is null or event.received_at >= %(since)s)
    and (%(within)s::interval is null or event.received_at >= {schema}.now() - %(within)s)
order by event.received_at desc, event.id desc
limit %(limit)s
