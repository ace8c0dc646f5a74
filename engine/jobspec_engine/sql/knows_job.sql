-- Whether any worker or any run is of a job, and which jobs there are: those of workers, those that
-- are paused, and those of the newest runs. Looks through all runs where there is none of the job.
select
    exists (select from {schema}.job_worker where %(job_id)s = any(job_ids))
        or exists (select from {schema}.job_queue where job_id = %(job_id)s),
    array(
        select unnest(job_ids) from {schema}.job_worker
        union
        select job_id from {schema}.job_pause
        union
        (select job_id from {schema}.job_queue order by id desc limit 1000)
        order by 1
    )
