-- Forget a worker that has stopped.
delete from {schema}.job_worker
where id = %(worker_id)s
