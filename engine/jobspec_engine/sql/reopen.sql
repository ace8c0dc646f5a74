-- Have a step that failed tried again by the next attempt.
-- Fenced by run id and lease token: no row if the run is not held, or the step did not fail. Locks
-- the run, then the memo.
with held as (
    select id
    from {schema}.job_queue
    where id = %(run_id)s and lease_token = %(lease_token)s
    for no key update
)
update {schema}.job_step as memo
set
    state = 'waiting',
    failures = 0,
    error = null,
    wake_at = {schema}.now(),
    revision = default,
    recorded_at = {schema}.now()
from held
where memo.run_id = held.id and task = %(task)s and name = %(name)s and number = %(number)s
    and memo.state = 'failed'
returning number
