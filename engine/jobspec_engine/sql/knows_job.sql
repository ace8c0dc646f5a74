-- Whether any worker or any run is of a job. Looks through all runs where there is none of them.
select
    exists (select from {schema}.job_worker where %(job_id)s = any(job_ids))
    or exists (select from {schema}.job_queue where job_id = %(job_id)s)
