"""Every invariant of the tables, broken by hand and refused; one list, so none is forgotten."""

from __future__ import annotations

import psycopg
import pytest

from enginekit import job
from jobspec_engine import Client

ANOTHER_OF_THE_EVENT = """
    (job_id, event_id, event_ts, enqueued_at, run_at, max_attempts)
    select job_id, event_id, 0, now(), now(), 1 from job_queue
"""
ANOTHER_OF_THE_BURST = """
    (job_id, event_id, event_ts, enqueued_at, run_at, max_attempts,
     debounce_digest, debounce_key, debounce_mode)
    select job_id, 'other', 0, now(), now(), 1, debounce_digest, debounce_key, debounce_mode
    from job_queue
"""
DEAD = "insert into job_dead_letter select id, job_id, event_id, 'crash-loop', '', now()"

A_STEP_OF_EACH_KIND = """
    insert into job_step
        (run_id, task, name, number, position, kind, state,
         wake_at, event_name, child_run_id, recorded_at)
    select %s, '', kind, 1, 1, kind, state, wake_at, event_name, child_run_id, now()
    from (values
        ('run', 'done', null, null, null),
        ('sleep', 'done', now(), null, null),
        ('wait', 'waiting', now(), 'event', null),
        ('invoke', 'waiting', null, null, 1)
    ) as memo (kind, state, wake_at, event_name, child_run_id)
"""

A_ROW_OF_OPERATION = """
    insert into job_cron (job_id, cron_digest, cron, ticked_until)
        values ('job', sha256('x'), '* * * * *', now());
    insert into job_pause values ('job', now());
    insert into job_worker (id, name, job_ids, started_at, seen_at)
        values (gen_random_uuid(), 'worker', '{}', now(), now())
"""

# By constraint: what breaks it, where each table has one row.
BREAKS = {
    "job_event_pkey": [
        "insert into job_event select * from job_event",
    ],
    "job_event_id_length": [
        "update job_event set id = ''",
        "update job_event set id = repeat('é', 128)",
    ],
    "job_event_name_length": [
        "update job_event set name = ''",
        "update job_event set name = repeat('é', 513)",
    ],
    "job_queue_pkey": ["insert into job_queue select * from job_queue"],
    "job_queue_event_once": [f"insert into job_queue {ANOTHER_OF_THE_EVENT}"],
    "job_queue_state": ["update job_queue set state = 'sleeping'"],
    "job_queue_lease_while_running": [
        "update job_queue set state = 'running'",
        "update job_queue set state = 'running', lease_token = gen_random_uuid()",
        "update job_queue set state = 'running', lease_until = now()",
        "update job_queue set lease_token = gen_random_uuid(), lease_until = now()",
        "update job_queue set lease_until = now()",
    ],
    "job_queue_finished": [
        "update job_queue set state = 'completed'",
        "update job_queue set state = 'failed'",
        "update job_queue set state = 'cancelled'",
        "update job_queue set finished_at = now()",
    ],
    "job_queue_attempt": [
        "update job_queue set attempt = -1",
        "update job_queue set attempt = max_attempts + 1",
        "update job_queue set max_attempts = 0",
    ],
    "job_queue_attempt_left": ["update job_queue set attempt = max_attempts"],
    "job_queue_cancel_holds": ["update job_queue set cancel_requested_at = now()"],
    "job_queue_replayed": ["update job_queue set replayed_as = 2"],
    "job_queue_passes": ["update job_queue set passes = -1"],
    "job_queue_refunds": ["update job_queue set refunds = -1"],
    "job_queue_events": ["update job_queue set events = 0"],
    "job_queue_run_by": ["update job_queue set run_at = run_by + interval '1 microsecond'"],
    "job_queue_run_at_readable": [
        "update job_queue set run_at = '-infinity'",
        "update job_queue set run_at = 'infinity', run_by = null",
    ],
    "job_queue_debounce_digest": [
        "update job_queue set debounce_digest = 'x'",
        "update job_queue set debounce_digest = sha512('x')",
    ],
    "job_queue_debounce_whole": [
        "update job_queue set debounce_digest = null",
        "update job_queue set debounce_key = null",
        "update job_queue set debounce_mode = null",
    ],
    "job_queue_debounce_mode": ["update job_queue set debounce_mode = 'some'"],
    "job_queue_debounce": [f"insert into job_queue {ANOTHER_OF_THE_BURST}"],
    "job_step_pkey": ["insert into job_step select * from job_step where kind = 'run'"],
    "job_step_run": ["update job_step set run_id = 0 where kind = 'run'"],
    "job_step_name_length": [
        "update job_step set name = '' where kind = 'run'",
        "update job_step set name = repeat('é', 128) where kind = 'run'",
    ],
    "job_step_number": [
        "update job_step set number = 0",
        "update job_step set position = -1",
    ],
    "job_step_kind": ["update job_step set kind = 'walk' where kind = 'run'"],
    "job_step_state": ["update job_step set state = 'begun' where kind = 'run'"],
    "job_step_failed": [
        "update job_step set state = 'failed' where kind = 'run'",
        "update job_step set error = '{}'",
    ],
    "job_step_result": [
        "update job_step set state = 'waiting', wake_at = now(), result = '1' where kind = 'run'",
        "update job_step set state = 'failed', error = '{}', result = '1' where kind = 'run'",
    ],
    "job_step_waits_for_time": [
        "update job_step set wake_at = null where kind = 'sleep'",
        "update job_step set state = 'waiting' where kind = 'run'",
        "update job_step set wake_at = null where kind = 'wait'",
    ],
    "job_step_waits_for_event": [
        "update job_step set event_name = null where kind = 'wait'",
        "update job_step set event_name = 'event' where kind = 'run'",
    ],
    "job_step_waits_for_run": [
        "update job_step set child_run_id = null where kind = 'invoke'",
        "update job_step set child_run_id = 1 where kind = 'run'",
    ],
    "job_idempotency_pkey": ["insert into job_idempotency select * from job_idempotency"],
    "job_idempotency_digest": ["update job_idempotency set key_digest = 'x'"],
    "job_idempotency_events": ["update job_idempotency set events = 0"],
    "job_dispatch_pkey": ["insert into job_dispatch select * from job_dispatch"],
    "job_dispatch_outcome": ["update job_dispatch set outcome = 'lost'"],
    "job_cron_pkey": ["insert into job_cron select * from job_cron"],
    "job_cron_digest": ["update job_cron set cron_digest = 'x'"],
    "job_pause_pkey": ["insert into job_pause select * from job_pause"],
    "job_worker_pkey": ["insert into job_worker select * from job_worker"],
    "job_dead_letter_pkey": [f"{DEAD} from job_queue, generate_series(1, 2)"],
    "job_dead_letter_run": [
        (
            "insert into job_dead_letter select 0, job_id, event_id, 'crash-loop', '', now()"
            " from job_queue"
        ),
    ],
    "job_dead_letter_event": [
        (
            "insert into job_dead_letter select id, job_id, 'none', 'crash-loop', '', now()"
            " from job_queue"
        ),
    ],
    "job_dead_letter_reason": [
        (
            "insert into job_dead_letter select id, job_id, event_id, 'bad luck', '', now()"
            " from job_queue"
        ),
    ],
}


@pytest.fixture
def at_hand(dsn):
    """A connection whose tables are the engine's, to a database with one row in each."""
    both = {"idempotency": "event.data.key", "debounce": {"period": "1m", "timeout": "5m"}}
    with Client(job(**both), dsn) as client:
        run_id = client.send("event", {"key": "k"}).jobs[0].run_id
    options = "-c search_path=jobspec"
    with psycopg.connect(dsn, autocommit=True, options=options) as connection:
        connection.execute(A_STEP_OF_EACH_KIND, [run_id])
        connection.execute(A_ROW_OF_OPERATION)
        yield connection


def test_whatever_breaks_an_invariant_is_refused(at_hand):
    for constraint, statements in BREAKS.items():
        for statement in statements:
            with pytest.raises(psycopg.errors.IntegrityError) as refused:
                at_hand.execute(statement.replace("now()", "pg_catalog.now()"))
            assert refused.value.diag.constraint_name == constraint, statement


def test_every_invariant_is_in_this_list(at_hand):
    rows = at_hand.execute(
        "select conname from pg_constraint where connamespace = 'jobspec'::regnamespace"
        " and contype in ('c', 'u', 'p', 'f', 'x') and conrelid <> 'migration'::regclass"
        " union select relname from pg_index join pg_class on pg_class.oid = indexrelid"
        " where indisunique and relnamespace = 'jobspec'::regnamespace"
        " and indrelid <> 'migration'::regclass"
    )
    assert {name for (name,) in rows} == set(BREAKS)
