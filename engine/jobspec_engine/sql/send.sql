-- Keep events and enqueue the runs they start, in one statement: all of it or none.
--
-- Locks, always in this order and each in the order of its key, so that racing sends wait for one
-- another and never deadlock: events by id, runs that wait for one of them, idempotency keys, then
-- debounced runs. Every step sorts what the step before returned, and so begins when that one has
-- finished.
--
-- The planner knows neither how many events there are, which come by sub-selects, nor of few rows where
-- there are many: so Postgres keeps a plan, which takes it a millisecond to make, and any batch may use it.
--
-- `on conflict do update` and not `do nothing`, where the row that was there first is wanted: it
-- returns that row even when it was committed after this statement's snapshot was taken.
--
-- Returns a row for each dispatch of an event that was not known yet. No row for an event: its id
-- was known, and nothing of it was written. `watched`: there are workers, which may sleep.
with recursive given_event as (
    select *
    from unnest(
        (select %(event_ids)s::text[]), (select %(event_names)s::text[]), (select %(event_data)s::text[]),
        (select %(event_ts)s::bigint[]), (select %(event_traces)s::text[])
    ) with ordinality as given (id, name, data, ts, trace, position)
),
new_event as (
    insert into {schema}.job_event (id, name, data, ts, received_at, trace)
    select
        id, name, data::json, coalesce(ts, floor(extract(epoch from {schema}.now()) * 1000)), {schema}.now(),
        trace
    from given_event
    order by id collate "C"
    on conflict (id) do nothing
    returning id, ts
),
-- By what paths there are steps that wait for an event of these names: from one to the next by a probe
-- of the index, however many wait.
awaited_by (event_name, paths) as (
    select name, (
        select {schema}.match_paths(event_match)
        from {schema}.job_step
        where state = 'waiting' and kind = 'wait' and event_name = name.name
        order by {schema}.match_paths(event_match)
        limit 1
    )
    from (select distinct name from given_event) as name
    union all
    select event_name, (
        select {schema}.match_paths(event_match)
        from {schema}.job_step
        where state = 'waiting' and kind = 'wait' and event_name = last.event_name
            and {schema}.match_paths(event_match) > last.paths
        order by {schema}.match_paths(event_match)
        limit 1
    )
    from awaited_by as last
    where paths is not null
),
-- What waits for one of these events. A memo is looked at before its run is locked; it is settled
-- only if it still waits then.
awaited as materialized (
    select
        memo.run_id, memo.task, memo.name, memo.number, event.position,
        json_build_object('id', event.id, 'name', event.name, 'ts', event.ts, 'data', event.data::json) as event
    from (
        select
            given_event.id, given_event.name, given_event.data, given_event.position, new_event.ts, paths,
            {schema}.event_digest(given_event.data, paths) as digest
        from awaited_by
        join given_event on given_event.name = event_name
        join new_event on new_event.id = given_event.id
        where paths is not null
        offset 0  -- one digest an event, and none before it is known that anybody waits
    ) as event
    cross join lateral (
        select run_id, task, name, number
        from {schema}.job_step
        where state = 'waiting' and kind = 'wait' and wake_at > {schema}.now() and event_name = event.name
            and {schema}.match_paths(event_match) = event.paths
            and {schema}.match_digest(event_match) = event.digest
        offset 0  -- by the index for each event, also before the table was analyzed
    ) as memo
),
waiting as materialized (
    select queue.id
    from (select distinct run_id from awaited order by run_id) as awaited
    cross join lateral (
        select id
        from {schema}.job_queue
        where id = run_id and state in ('pending', 'running')
        for no key update
    ) as queue
),
settled as (
    update {schema}.job_step as memo
    set
        state = 'done', result = event, revision = default, answers_from = {schema}.now(),
        recorded_at = {schema}.now()
    from (
        select distinct on (run_id, task, name, number) *
        from awaited
        where run_id in (select id from waiting)
        order by run_id, task, name, number, position
    ) as first
    where exists (select from waiting)  -- else it reads nothing, by whatever plan
        and memo.run_id = first.run_id and memo.task = first.task and memo.name = first.name
        and memo.number = first.number and memo.state = 'waiting'
    returning memo.run_id
),
signalled as (
    update {schema}.job_queue as queue
    set signalled = true, run_at = case state when 'pending' then {schema}.now() else run_at end
    where id in (select run_id from settled)
),
-- Run ids are allotted here, so that an idempotency key can name its run before the run is written;
-- in the order given, since runs that are due at the same time are claimed by id. `joins`: the key by
-- which it may join a run.
dispatch as materialized (
    select in_order.*, nextval(%(run_id_sequence)s::regclass) as run_id
    from (
        select given.*, new_event.ts, case when key_error is null then debounce_digest end as joins
        from unnest(
            %(dispatch_event_ids)s::text[], %(job_ids)s::text[], %(max_attempts)s::int[],
            %(idempotency_digests)s::bytea[], %(idempotency_keys)s::text[],
            %(debounce_digests)s::bytea[], %(debounce_keys)s::text[],
            %(windows)s::interval[], %(while_active)s::bool[],
            %(waits)s::interval[], %(timeouts)s::interval[], %(key_errors)s::text[]
        ) with ordinality as given (
            event_id, job_id, max_attempts,
            idempotency_digest, idempotency_key, debounce_digest, debounce_key,
            key_window, while_active, wait, timeout, key_error, position
        )
        join new_event on new_event.id = given.event_id
        where (select count(*) from waiting) >= 0  -- the runs that wait are locked first
        order by position
    ) as in_order
),
-- The first event of this batch with a key stands for the others.
used_key as (
    insert into {schema}.job_idempotency as kept (
        job_id, key_digest, key, run_id, first_at, events, expires_at, while_active
    )
    select distinct on (job_id, idempotency_digest)
        job_id, idempotency_digest, idempotency_key, run_id, {schema}.now(),
        count(*) over (partition by job_id, idempotency_digest), {schema}.now() + key_window, while_active
    from dispatch
    where idempotency_digest is not null
    order by job_id, idempotency_digest, position
    -- A key that is free again is taken as if it were new; a key in use only counts.
    on conflict (job_id, key_digest) do update set
        (run_id, first_at, expires_at, while_active, events) = (
            select
                excluded.run_id, excluded.first_at, excluded.expires_at, excluded.while_active,
                excluded.events
            where kept.expires_at <= excluded.first_at
            union all
            select
                kept.run_id, kept.first_at, kept.expires_at, kept.while_active,
                kept.events + excluded.events
            where (kept.expires_at <= excluded.first_at) is not true
        )
    returning job_id, key_digest, run_id
),
-- `kept_run_id`: the run that its idempotency key names, its own where it has none.
decided as materialized (
    select
        dispatch.*, coalesce(used_key.run_id, dispatch.run_id) as kept_run_id,
        coalesce(used_key.run_id = dispatch.run_id, true) as admitted
    from dispatch
    left join used_key
        on used_key.job_id = dispatch.job_id and used_key.key_digest = dispatch.idempotency_digest
),
-- The latest event of this batch with a debounce key stands for the others, under the first one's run id.
enqueued as (
    insert into {schema}.job_queue as kept (
        id, job_id, event_id, event_ts, state, enqueued_at, run_at, run_by,
        debounce_digest, debounce_key, debounce_mode, events, max_attempts, finished_at
    )
    select distinct on (job_id, joins, alone)
        min(run_id) over same_run, job_id, event_id, ts,
        case when key_error is null then 'pending' else 'failed' end, {schema}.now(),
        {schema}.now() + coalesce(least(wait, timeout), interval '0'),
        case when joins is not null then {schema}.now() + timeout end,
        joins, case when joins is not null then debounce_key end,
        case when joins is not null then 'debounce' end, count(*) over same_run, max_attempts,
        case when key_error is not null then {schema}.now() end
    from (
        select *, case when joins is null then run_id end as alone
        from decided
        where admitted
    ) as admitted
    window same_run as (partition by job_id, joins, alone)
    order by job_id, joins, alone, ts desc, position desc
    on conflict (job_id, debounce_digest)
        where state = 'pending' and first_claimed_at is null and debounce_digest is not null
    -- An older event that arrives late neither replaces nor postpones, nor bounds a run that has no bound.
    do update set
        event_id = case when excluded.event_ts >= kept.event_ts then excluded.event_id else kept.event_id end,
        event_ts = greatest(kept.event_ts, excluded.event_ts),
        run_at = case
            when excluded.event_ts >= kept.event_ts then least(
                greatest(kept.run_at, excluded.run_at), coalesce(kept.run_by, excluded.run_by)
            )
            else kept.run_at
        end,
        run_by = case
            when excluded.event_ts >= kept.event_ts then coalesce(kept.run_by, excluded.run_by)
            else kept.run_by
        end,
        debounce_mode = excluded.debounce_mode,
        max_attempts = excluded.max_attempts,
        events = kept.events + excluded.events
    returning id, job_id, debounce_digest, run_at
),
dead_letter as (
    insert into {schema}.job_dead_letter (run_id, job_id, event_id, reason, message, died_at)
    select run_id, job_id, event_id, 'key-error', key_error, {schema}.now()
    from decided
    where admitted and key_error is not null
),
-- A duplicate of an event of this batch that coalesced has the run which that one joined.
outcome as (
    select
        position, event_id, decided.job_id, joins, decided.run_id as allotted_run_id,
        case
            when not admitted then 'duplicate'
            when key_error is not null then 'dead-letter'
            when enqueued.id <> decided.run_id then 'coalesced'
            else 'enqueued'
        end as outcome,
        coalesce(min(enqueued.id) over (partition by kept_run_id), kept_run_id) as run_id,
        coalesce(enqueued.run_at, {schema}.now() + coalesce(wait, interval '0')) as run_at
    from decided
    left join enqueued
        on enqueued.job_id = decided.job_id and enqueued.debounce_digest = decided.joins and admitted
),
told as (
    insert into {schema}.job_dispatch (event_id, job_id, outcome, run_id)
    select event_id, job_id, outcome, run_id
    from outcome
    where outcome in ('duplicate', 'coalesced') or outcome = 'enqueued' and joins is not null
    -- Only where somebody deleted the event by hand: what is told of events must not fail a send.
    on conflict (event_id, job_id) do update set outcome = excluded.outcome, run_id = excluded.run_id
)
select
    position, outcome, run_id, allotted_run_id, run_at, exists (select from {schema}.job_worker) as watched
from outcome
order by position
