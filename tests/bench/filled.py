"""Rows that may be there before: SQL that writes them, by what they are."""

from __future__ import annotations

FILLED = {
    "500,000 runs of the future": """
        insert into jobspec.job_event (id, name, data, ts, received_at)
        select 'later-' || n, 'noop', '{"value": 1}', 0, now()
        from generate_series(1, 500000) as n;
        insert into jobspec.job_queue (
            job_id, event_id, event_ts, enqueued_at, run_at, max_attempts
        )
        select 'noop', 'later-' || n, 0, now(), now() + interval '1 day', 5
        from generate_series(1, 500000) as n
    """,
    "2,000,000 finished runs": """
        insert into jobspec.job_event (id, name, data, ts, received_at)
        select 'before-' || n, 'noop', '{"value": 1}', 0, now()
        from generate_series(1, 2000000) as n;
        insert into jobspec.job_queue (
            job_id, event_id, event_ts, state, enqueued_at, run_at, max_attempts, attempt,
            first_claimed_at, finished_at
        )
        select 'noop', 'before-' || n, 0, 'completed', now(), now(), 5, 1, now(), now()
        from generate_series(1, 2000000) as n
    """,
    "100,000 debounced keys that wait": """
        insert into jobspec.job_event (id, name, data, ts, received_at)
        select 'burst-' || n, 'latest', '{"value": 1}', 0, now()
        from generate_series(1, 100000) as n;
        insert into jobspec.job_queue (
            job_id, event_id, event_ts, enqueued_at, run_at, max_attempts,
            debounce_digest, debounce_key, debounce_mode
        )
        select 'latest', 'burst-' || n, 0, now(), now() + interval '1 day', 5,
            sha256(('burst-' || n)::bytea), 'burst-' || n, 'debounce'
        from generate_series(1, 100000) as n
    """,
    "1,000,000 idempotency keys": """
        insert into jobspec.job_idempotency (job_id, key_digest, key, run_id, first_at)
        select 'once', sha256(('used-' || n)::bytea), 'used-' || n, n, now()
        from generate_series(1, 1000000) as n
    """,
}
