-- What a claim reads, by job: it read past all that was due of jobs that its worker does not have.
--
-- All of this is one short transaction behind the strongest lock it needs, taken first: who waits for it
-- holds nothing that this waits for. Statements on runs wait until it is committed, and none fails.
-- The index may be made before, without anybody waiting: see docs/guide/deployment.md.
lock table {schema}.job_queue in access exclusive mode;

create index if not exists job_queue_ready on {schema}.job_queue (job_id, priority, run_at, id)
    where state = 'pending';

drop index {schema}.job_queue_due;

-- What a cancellation by key reads of runs that were claimed; job_queue_debounce has the others.
create index if not exists job_queue_keyed on {schema}.job_queue (job_id, debounce_digest)
    where debounce_digest is not null and first_claimed_at is not null and state in ('pending', 'running');

-- A claim counts an attempt up: one run that has none left would fail the claims of all others.
alter table {schema}.job_queue
    add constraint job_queue_attempt_left check (state <> 'pending' or attempt < max_attempts);
