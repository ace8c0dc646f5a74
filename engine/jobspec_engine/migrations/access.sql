-- What each group role may do with one schema: the least that its work takes. Run again after every
-- migration; see docs/decisions/0010-roles.md. Changes no row and locks no table.
grant usage on schema {schema} to {sender}, {worker}, {reader};
grant select on {schema}.migration to {sender}, {worker}, {reader};

-- Sends events and adds jobs. Reads what its statements compare: ids, times, states, digests of keys, and
-- what steps wait for; no payload, no result, no error, no key's text. What it may update, it may update
-- of few rows only: see the triggers `…_guarded`.
grant insert, select (id, ts) on {schema}.job_event to {sender};
grant
    insert (
        id, job_id, event_id, event_ts, state, enqueued_at, run_at, run_by, debounce_digest, debounce_key,
        debounce_mode, events, priority, max_attempts, finished_at
    ),
    select (
        tableoid, id, job_id, event_id, event_ts, state, run_at, run_by, debounce_digest, debounce_mode, events,
        priority, max_attempts, first_claimed_at
    ),
    update (event_id, event_ts, run_at, run_by, debounce_mode, events, priority, max_attempts, signalled)
on {schema}.job_queue to {sender};
grant usage on sequence {schema}.job_queue_id_seq to {sender};
grant
    insert, select (event_id, job_id, outcome, run_id), update (outcome, run_id)
on {schema}.job_dispatch to {sender};
grant
    insert,
    select (job_id, key_digest, run_id, first_at, events, expires_at, while_active),
    update (run_id, first_at, events, expires_at, while_active)
on {schema}.job_idempotency to {sender};
grant
    select (run_id, task, name, number, kind, state, wake_at, event_name, event_match),
    update (state, result, revision, answers_from, recorded_at)
on {schema}.job_step to {sender};
grant insert, select (run_id, reason) on {schema}.job_dead_letter to {sender};
grant select (id) on {schema}.job_worker to {sender};

-- Does all that runs take: sends, claims, records, cancels, replays, pauses, prunes. Of events and dead
-- letters it updates nothing but what the event of a replayed run stands for: `for update` wants the right
-- to update a column.
grant select, insert, delete, update (received_at, stands_for) on {schema}.job_event to {worker};
grant select, insert, delete, update on {schema}.job_queue to {worker};
grant usage on sequence {schema}.job_queue_id_seq to {worker};
grant select, insert, delete, update on {schema}.job_dispatch to {worker};
grant select, insert, delete, update on {schema}.job_idempotency to {worker};
grant select, insert, update on {schema}.job_step to {worker};
grant select, insert, delete, update (died_at) on {schema}.job_dead_letter to {worker};
grant select, insert, update on {schema}.job_cron to {worker};
grant select, insert, delete on {schema}.job_pause to {worker};
grant select, insert, delete, update on {schema}.job_worker to {worker};

-- Looks at everything.
grant select on
    {schema}.job_event, {schema}.job_queue, {schema}.job_dispatch, {schema}.job_idempotency, {schema}.job_step,
    {schema}.job_dead_letter, {schema}.job_cron, {schema}.job_pause, {schema}.job_worker
to {reader};

-- Migrates: the tables and functions are made its own.
grant usage, create on schema {schema} to {owner};
