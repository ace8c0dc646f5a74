-- The runs of a job that go by a key and have not ended: the one that an idempotency key names, and
-- those with a debounce key, which is also what `add_job` calls a job key: the one that was never
-- claimed, and those that were, each by the index of its kind.
select queue.id
from {schema}.job_idempotency as kept
join {schema}.job_queue as queue on queue.id = kept.run_id
where kept.job_id = %(job_id)s and kept.key_digest = %(idempotency_digest)s::bytea
    and queue.state in ('pending', 'running')
union
select id
from {schema}.job_queue
where job_id = %(job_id)s and debounce_digest = %(debounce_digest)s::bytea
    and first_claimed_at is null and state = 'pending'
union
select id
from {schema}.job_queue
where job_id = %(job_id)s and debounce_digest = %(debounce_digest)s::bytea
    and first_claimed_at is not null and state in ('pending', 'running')
order by 1
