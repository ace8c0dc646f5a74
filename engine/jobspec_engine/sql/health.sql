-- What one look at a schema tells of its health, in one row. Reads what is running and what is due by
-- their indexes.
select
    nullif(current_setting('jobspec.now', true), '')::timestamptz,
    clock_timestamp(),
    (
        select count(*)
        from {schema}.job_queue
        where state = 'running' and lease_until < {schema}.now() - interval '1 minute'
    ),
    (
        select array_agg(row_to_json(waiting) order by oldest)
        from (
            select
                job_id, count(*) as runs, min(run_at) as oldest,
                extract(epoch from {schema}.now() - min(run_at)) as seconds,
                exists (select from {schema}.job_pause as pause where pause.job_id = queue.job_id) as paused,
                exists (
                    select
                    from {schema}.job_worker as worker
                    where queue.job_id = any(worker.job_ids)
                        and worker.seen_at >= {schema}.now() - interval '1 minute'
                ) as worked
            from {schema}.job_queue as queue
            where state = 'pending' and run_at <= {schema}.now()
            group by job_id
        ) as waiting
    )
