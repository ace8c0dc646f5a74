-- Whether any worker or any run is of a job, and which jobs workers have. Looks through all runs where
-- there is none of the job.
select
    exists (select from {schema}.job_worker where %(job_id)s = any(job_ids))
        or exists (select from {schema}.job_queue where job_id = %(job_id)s),
    array(select distinct unnest(job_ids) from {schema}.job_worker order by 1)
