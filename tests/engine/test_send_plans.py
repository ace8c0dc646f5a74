"""What sends read of a schema that is full: of the rows that they write, and no others."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from enginekit import SQL
from jobspec_engine.dispatch import Dispatch, digest
from jobspec_engine.events import Encoded
from planskit import FEW, OF_A_ROW, kept_plan, looked_at, plan, read_whole

OTHERS = 20_000
MINUTE = timedelta(minutes=1)


@pytest.fixture
def full(connection):
    """A schema with many runs that have ended, that are due later, and that events may join."""
    connection.execute(
        "insert into jobspec.job_event"
        " select n::text, 'event', '{}', 0, now() from generate_series(1, %s * 3) as n",
        [OTHERS],
    )
    connection.execute(
        "insert into jobspec.job_queue"
        " (job_id, event_id, event_ts, enqueued_at, run_at, max_attempts, state, finished_at,"
        "  debounce_digest, debounce_key, debounce_mode)"
        " select 'job', n::text, 0, now(), now() + interval '1 day', 5,"
        "  case when n %% 3 = 0 then 'completed' else 'pending' end,"
        "  case when n %% 3 = 0 then now() end,"
        "  case when n %% 3 = 1 then sha256(n::text::bytea) end,"
        "  case when n %% 3 = 1 then n::text end,"
        "  case when n %% 3 = 1 then 'debounce' end"
        " from generate_series(1, %s * 3) as n",
        [OTHERS],
    )
    connection.execute(
        "insert into jobspec.job_idempotency (job_id, key_digest, key, run_id, first_at)"
        " select 'job', sha256(n::text::bytea), n::text, n, now()"
        " from generate_series(1, %s) as n",
        [OTHERS],
    )
    connection.execute("vacuum analyze")
    return connection


def events(how_many):
    return [Encoded(f"new {n}", "event", "{}", None) for n in range(how_many)]


def plain(how_many):
    given = events(how_many)
    return SQL.send_plain(given, [Dispatch(one.id, "job", 5) for one in given])


def new(how_many):
    given = events(how_many)
    return SQL.send_new(given, [Dispatch(one.id, "job", 5) for one in given])


def once(how_many):
    """Half of the keys are new."""
    given = events(how_many)
    keys = [str(n + OTHERS - how_many // 2) for n in range(how_many)]
    return SQL.send_idempotent(
        given,
        [
            Dispatch(one.id, "job", 5, digest(key), key)
            for one, key in zip(given, keys, strict=True)
        ],
    )


def debounced(how_many):
    """Half of them join a run."""
    given = events(how_many)
    keys = [str(1 + 3 * (n // 2) if n % 2 else -n) for n in range(how_many)]
    return SQL.send_debounced(
        given,
        [
            Dispatch(one.id, "job", 5, debounce_digest=digest(key), debounce_key=key, wait=MINUTE)
            for one, key in zip(given, keys, strict=True)
        ],
    )


def both(how_many):
    """Each is debounced under a key that another event used before, or has an idempotency key."""
    given = events(how_many)
    keys = [str(1 + 3 * n) for n in range(how_many)]
    return SQL.send(
        given,
        [
            Dispatch(one.id, "job", 5, digest(key), key)
            if n % 2
            else Dispatch(one.id, "job", 5, None, None, digest(key), key, wait=MINUTE)
            for n, (one, key) in enumerate(zip(given, keys, strict=True))
        ],
    )


def compared_in_vain(node):
    """Return how many pairs of rows the joins of a plan looked at that do not belong together."""
    own = node.get("Rows Removed by Join Filter", 0) * node["Actual Loops"]
    return own + sum(map(compared_in_vain, node.get("Plans", ())))


@pytest.mark.parametrize("how_many", [1, 100])
@pytest.mark.parametrize("send", [new, plain, once, debounced, both])
@pytest.mark.parametrize("made", [plan, kept_plan], ids=["for its rows", "once for all"])
def test_a_send_reads_the_rows_that_it_writes(full, send, how_many, made):
    assert looked_at(made(full, send(how_many))) < FEW + OF_A_ROW * how_many


@pytest.mark.parametrize("send", [new, plain, once, debounced, both])
@pytest.mark.parametrize("made", [plan, kept_plan], ids=["for its rows", "once for all"])
def test_a_large_send_compares_no_row_with_each_other(full, send, made):
    """Its plan may be one that was made for few rows: a bulk uses it like a send alone."""
    full.execute("set plan_cache_mode = force_generic_plan")
    assert compared_in_vain(made(full, send(1_000))) == 0


@pytest.fixture
def of_a_new_schema(databases, template):
    """A line to a schema of whose tables Postgres knows nothing yet."""
    name, dsn = databases.create(template)
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection
    databases.drop(name)


@pytest.mark.parametrize("send", [new, plain, once, debounced, both])
def test_a_send_reads_no_table_from_end_to_end_by_a_plan_made_when_they_were_empty(
    of_a_new_schema, send
):
    of_a_new_schema.execute("set plan_cache_mode = force_generic_plan")
    large = {"job_event", "job_queue", "job_step", "job_idempotency", "job_dispatch"}
    assert not read_whole(kept_plan(of_a_new_schema, send(10))) & large
