-- A key that counts while its run is active is free from the run's end on. That was the time of the end;
-- by a clock that was put back the key counted on, and what was sent then started nothing. It is 1970
-- now, in this function and in the statements that end runs. Not -infinity, which Python can't read.
update {schema}.job_idempotency
set expires_at = 'epoch'
where while_active and expires_at is not null;

-- As in 0001_init.sql, but for that.
create or replace function {schema}.cancel(run_ids bigint[], out run_id bigint, out outcome text)
returns setof record
language plpgsql
as $$
#variable_conflict use_column
declare
    own       bigint[];
    keys      bigint;
    joinable  bigint[];
    cancelled bigint[];
    requested bigint[];
begin
    loop
        begin
            own := array(
                select id
                from {schema}.job_queue
                where id = any(cancel.run_ids) and state in ('pending', 'running')
                    and (first_claimed_at is not null or debounce_digest is null)
                order by id
                for update
            );
            perform
            from {schema}.job_queue
            where id in (select parent_run_id from {schema}.job_queue where id = any(own))
            order by id
            for no key update;

            select count(*) into keys
            from (
                select
                from {schema}.job_idempotency as kept
                where kept.run_id = any(cancel.run_ids) and while_active
                order by job_id, key_digest
                for update
            ) as key;

            joinable := array(
                select id
                from {schema}.job_queue
                where id = any(cancel.run_ids) and state = 'pending'
                    and first_claimed_at is null and debounce_digest is not null
                order by job_id, debounce_digest
                for update
            );
            exit when keys = (
                select count(*)
                from {schema}.job_idempotency as kept
                where kept.run_id = any(cancel.run_ids) and while_active
            ) and not exists (
                select
                from {schema}.job_queue
                where id = any(cancel.run_ids) and state in ('pending', 'running')
                    and id <> all(own || joinable)
            );
            raise sqlstate 'JS001';
        exception when sqlstate 'JS001' then
            null;
        end;
    end loop;
    with asked as (
        update {schema}.job_queue
        set
            state = case state when 'pending' then 'cancelled' else state end,
            finished_at = case state when 'pending' then {schema}.now() end,
            cancel_requested_at = coalesce(cancel_requested_at, {schema}.now())
        where id = any(own || joinable)
        returning id, state
    )
    select
        array_agg(id) filter (where state = 'cancelled'),
        array_agg(id) filter (where state = 'running')
    into cancelled, requested
    from asked;
    update {schema}.job_idempotency as kept
    set expires_at = 'epoch'
    where kept.run_id = any(cancelled) and while_active;
    if requested is not null then
        perform pg_notify(nspname || '.wake', 'cancel')
        from pg_class join pg_namespace on pg_namespace.oid = relnamespace
        where pg_class.oid = (select tableoid from {schema}.job_queue where id = requested[1]);
    end if;
    return query
    select
        id,
        case
            when id = any(cancelled) then 'cancelled'
            when id = any(requested) then 'requested'
            else 'ended'
        end
    from {schema}.job_queue
    where id = any(cancel.run_ids)
    order by id;
end
$$;
