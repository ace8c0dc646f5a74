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
DEAD = "insert into job_dead_letter select id, job_id, 'crash-loop', '', now()"

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
    "job_queue_refunds": ["update job_queue set refunds = -1"],
    "job_queue_events": ["update job_queue set events = 0"],
    "job_queue_run_by": ["update job_queue set run_at = run_by + interval '1 microsecond'"],
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
    "job_idempotency_pkey": ["insert into job_idempotency select * from job_idempotency"],
    "job_idempotency_digest": ["update job_idempotency set key_digest = 'x'"],
    "job_idempotency_events": ["update job_idempotency set events = 0"],
    "job_dead_letter_pkey": [f"{DEAD} from job_queue, generate_series(1, 2)"],
    "job_dead_letter_run": [
        "insert into job_dead_letter values (0, 'job', 'crash-loop', '', now())",
    ],
    "job_dead_letter_reason": [
        "insert into job_dead_letter select id, job_id, 'bad luck', '', now() from job_queue",
    ],
}


@pytest.fixture
def at_hand(dsn):
    """A connection whose tables are the engine's, to a database with one row in each."""
    both = {"idempotency": "event.data.key", "debounce": {"period": "1m", "timeout": "5m"}}
    with Client(job(**both), dsn) as client:
        client.send("event", {"key": "k"})
    options = "-c search_path=jobspec"
    with psycopg.connect(dsn, autocommit=True, options=options) as connection:
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
