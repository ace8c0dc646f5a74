-- No infinite time, nor one that clients can't read: one such run would fail the claims of all others on
-- servers before 17, and every list that it is in. Years are 1000 to 9998, so that no time zone leads
-- out of those that Python has. Not valid: runs from before may have such a time, and are left.
--
-- Wants the strongest lock on runs for a moment, and reads none of them.
alter table {schema}.job_queue add constraint job_queue_run_at_readable
    check (run_at >= '1000-01-01 00:00+00' and run_at < '9999-01-01 00:00+00') not valid;
