-- The memos of a run that were written since a revision, and the time. Locks nothing.
--
-- Who writes memos of a run holds the run's row, so that revisions are in the order of the commits
-- and none is missed. Always returns a row; one without a memo: nothing was written since.
select
    {schema}.now(), memo.task, memo.name, memo.number, memo.position, memo.kind, memo.state,
    memo.revision, memo.failures, memo.result::text, memo.error::text, memo.wake_at,
    coalesce(memo.answers_from, memo.recorded_at)
from (select) as always
left join {schema}.job_step as memo on memo.run_id = %(run_id)s and memo.revision > %(after)s
