-- Who may update some columns of a table may do with them what a send does, and no more. That is what
-- senders may; see docs/decisions/0010-roles.md. A worker may update all of the table.
create function {schema}.guard() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if not has_table_privilege(tg_relid, 'update') then
        raise insufficient_privilege using
            message = format('permission denied to change this row of table %I', tg_table_name),
            hint = 'A sender changes what its events join, and nothing else: be a worker for more.';
    end if;
    return null;
end
$$;

-- An event joins a run that is pending and was never claimed, or wakes one whose step waited for it.
create trigger job_queue_guarded after update on {schema}.job_queue
    for each row when (
        (old.state <> 'pending' or old.first_claimed_at is not null or old.debounce_digest is null)
        and (
            old.run_at <> new.run_at and not new.signalled
            or (new.event_id, new.event_ts, new.run_by, new.debounce_mode, new.events, new.priority, new.max_attempts)
                is distinct from
                (old.event_id, old.event_ts, old.run_by, old.debounce_mode, old.events, old.priority, old.max_attempts)
        )
    )
    execute function {schema}.guard();

-- A key in use is only counted; one that is free again is taken.
create trigger job_idempotency_guarded after update on {schema}.job_idempotency
    for each row when (
        (old.expires_at <= {schema}.now()) is not true
        and (new.run_id, new.first_at, new.expires_at, new.while_active)
            is distinct from (old.run_id, old.first_at, old.expires_at, old.while_active)
    )
    execute function {schema}.guard();

-- An event settles a step that waits for one.
create trigger job_step_guarded after update on {schema}.job_step
    for each row when (old.kind <> 'wait' or old.state <> 'waiting' or new.state <> 'done')
    execute function {schema}.guard();
