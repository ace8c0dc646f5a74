-- Forget a worker that has stopped. Locks its row alone, which another worker may have removed before.
delete from {schema}.job_worker
where id = %(worker_id)s
