-- Pause a job: no claim that begins after this takes a run of it, and its schedules stand still.
-- Locks nothing but the pause itself. No row: it was paused already.
insert into {schema}.job_pause (job_id, paused_at)
values (%(job_id)s, {schema}.now())
on conflict (job_id) do nothing
returning job_id
