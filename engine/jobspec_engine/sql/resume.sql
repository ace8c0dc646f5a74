-- Let a paused job go on. Locks nothing but the pause. No row: it was not paused.
delete from {schema}.job_pause
where job_id = %(job_id)s
returning job_id
