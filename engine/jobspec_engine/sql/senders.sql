-- Which transactions write events now. Locks nothing.
--
-- Whoever sends holds this lock on the table before its statement's snapshot is taken: one that is not
-- told of here has committed, or sees all that is committed now.
select array_agg(virtualtransaction)
from pg_locks
where relation = '{schema}.job_event'::regclass and mode = 'RowExclusiveLock' and granted
    and database = (select oid from pg_database where datname = current_database())
