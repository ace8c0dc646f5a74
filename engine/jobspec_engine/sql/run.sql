-- One run and all that is known of it, with the steps that were written last, a hundred at most. No row:
-- there is none with this id. Locks nothing.
select
    queue.id, queue.job_id, queue.state, queue.attempt, queue.max_attempts, queue.refunds,
    queue.priority, queue.events, event.id, event.name, event.data::text,
    key.key, queue.debounce_key, queue.enqueued_at, queue.run_at, queue.first_claimed_at, queue.claimed_at,
    queue.claimed_by, queue.cancel_requested_at, queue.finished_at, queue.result::text,
    dead.reason, dead.message, queue.replayed_as, step.told, queue.errors
from {schema}.job_queue as queue
left join {schema}.job_event as event on event.id = queue.event_id
left join {schema}.job_dead_letter as dead on dead.run_id = queue.id
left join lateral (
    -- No index by run: the keys of one job are looked through, for one run that somebody looks at.
    select used.key
    from {schema}.job_idempotency as used
    where used.job_id = queue.job_id and used.run_id = queue.id
    order by used.first_at
    limit 1
) as key on true
cross join lateral (
    select coalesce(json_agg(
        json_build_object(
            'name', memo.name, 'number', memo.number, 'task', memo.task, 'kind', memo.kind,
            -- A sleep is kept as done when it begins: nothing is to be done again when it is over.
            'state', case
                when memo.kind = 'sleep' and memo.wake_at > {schema}.now() then 'waiting'
                else memo.state
            end,
            'failures', memo.failures, 'recorded_at', memo.recorded_at, 'wake_at', memo.wake_at,
            'event', memo.event_name, 'run', memo.child_run_id, 'error', memo.error
        ) order by memo.revision
    ), '[]') as told
    from (
        select latest.*
        from {schema}.job_step as latest
        where latest.run_id = queue.id
        order by latest.revision desc
        limit 100
    ) as memo
) as step
where queue.id = %(run_id)s
