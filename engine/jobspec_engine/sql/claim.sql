-- Take runs that are due under a lease: by priority, then the longest due first. None of a paused job.
--
-- Locks the rows it takes and skips those that somebody else holds. A run that a send has just put
-- off is looked at again in its new version, and left. So is one, due all the same, that a send has
-- just given an event newer than this statement's snapshot, or moved: the joins, made before the lock or
-- by the row's place, no longer hold. The next claim takes it. Zero rows: nothing is due that nobody holds.
--
-- The index has the runs of each job by priority and time: a lane is one job at one priority. Each lane
-- that is there is found by a probe; of a job's lanes with something due the first are enough, twice as
-- many as runs are wanted (where others hold the runs of all of these, the claim takes fewer). The front of
-- each is looked at: together twice as many runs as are wanted, and eight of a lane. That tells the cut,
-- the time up to which the order among lanes is known. Runs are locked up to there lane by lane, then those
-- at that very time, then those beyond it, and no further than the limit: what a lateral join gives is read
-- row by row. So a lane whose runs others hold is read on behind them.
-- A run may be overtaken by later ones of a lane that has more runs to take than were looked at, and
-- once at most: the next claim begins with the lane whose first run has been due longest.
--
-- The limit is 1000 at most. The constants say so to the planner, which knows no parameter when it makes
-- the plan that it keeps: it would take the limit for a tenth of the table.
with recursive lane as (
    select job.id as job_id, first.priority, first.run_at, 0 as due_before
    from unnest(%(job_ids)s::text[]) as job (id)
    cross join lateral (
        select priority, run_at
        from {schema}.job_queue
        where state = 'pending' and job_id = job.id
        order by priority, run_at
        limit 1
    ) as first
    where id not in (select job_id from {schema}.job_pause)
    union all
    select lane.job_id, next.priority, next.run_at, lane.due_before + (lane.run_at <= {schema}.now())::int
    from lane
    cross join lateral (
        select priority, run_at
        from {schema}.job_queue
        where state = 'pending' and job_id = lane.job_id and priority > lane.priority
        order by priority, run_at
        limit 1
    ) as next
    where lane.due_before < 2 * %(limit)s
),
width as (
    -- Of a single lane nothing need be known.
    select
        case count(*) when 1 then 1 else greatest(8, ceil(2.0 * %(limit)s / nullif(count(*), 0))::bigint) end
            as runs
    from lane
),
front as (
    select
        job_id, priority,
        array(
            select run_at
            from (
                select run_at
                from {schema}.job_queue
                where state = 'pending' and job_id = lane.job_id and priority = lane.priority
                    and run_at <= {schema}.now()
                order by run_at
                limit (select runs from width)
            ) as first
            limit 2000
        ) as runs
    from lane
),
cut as (
    select priority, coalesce(min(run_at) filter (where is_last), 'infinity') as run_at
    from (
        select
            priority, run_at,
            number = (select runs from width)
                or row_number() over (order by priority, run_at) >= %(limit)s as is_last
        from front
        cross join lateral unnest(runs) with ordinality as run (run_at, number)
    ) as known
    group by priority
),
stretch as (
    select front.job_id, front.priority, stretch.since, stretch.until
    from front
    join cut on cut.priority = front.priority
    cross join lateral (
        values
            (1, front.runs[1], cut.run_at),
            (2, cut.run_at, cut.run_at + interval '1 microsecond'),
            (3, cut.run_at + interval '1 microsecond', 'infinity')
    ) as stretch (number, since, until)
    where front.runs <> '{}'
    order by front.priority, stretch.number, front.runs[1], front.job_id
),
due as (
    select place
    from (
        select run.place
        from stretch
        cross join lateral (
            select ctid as place
            from {schema}.job_queue
            where state = 'pending' and job_id = stretch.job_id and priority = stretch.priority
                and run_at >= stretch.since and run_at < stretch.until and run_at <= {schema}.now()
            order by run_at, id
            limit %(limit)s
            for update skip locked
        ) as run
        limit %(limit)s
    ) as first
    limit 1000
),
claimed as (
    update {schema}.job_queue as queue
    set
        state = 'running',
        attempt = attempt + 1,
        passes = passes + 1,
        signalled = false,
        first_claimed_at = coalesce(first_claimed_at, (select {schema}.now())),
        claimed_by = %(worker)s,
        claimed_at = (select {schema}.now()),
        lease_token = %(lease_token)s,
        lease_until = (select {schema}.now()) + %(lease)s
    where ctid = any(array(select place from due))
    returning
        id, job_id, event_id, attempt, max_attempts, passes, priority, run_at, first_claimed_at, claimed_at
)
select
    claimed.id, claimed.job_id, claimed.attempt, claimed.max_attempts,
    coalesce(event.stands_for, event.id), event.name, event.data::text,
    event.ts,
    case when claimed.attempt = 1 and claimed.passes = 1 then claimed.claimed_at - claimed.run_at end,
    claimed.claimed_at - claimed.first_claimed_at, claimed.passes, event.trace
from claimed
join {schema}.job_event as event on event.id = claimed.event_id
order by claimed.priority, claimed.run_at, claimed.id
