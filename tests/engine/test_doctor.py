"""The doctor: each thing that may be wrong with a database is found, and what to do is said."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from clikit import jobspec
from databases import wait_until_blocked
from enginekit import claim, count, job, send, until_async, working
from jobspec_engine import Client, doctor
from jobspec_engine.calls import fetch
from jobspec_engine.doctor import CLOCK_DIFFERENCE, clocks, examine
from jobspec_engine.migrate import SHIPPED, migrate, read_migrations
from jobspec_engine.operation_statements import OperationStatements, SessionRow, TableRow


@pytest.fixture
def run(on_this_database):
    """Runs a command on this test's database."""
    return jobspec


@pytest.fixture
def damaged(empty_dsn):
    """A connection to a database that this test may damage, for it is not used again."""
    migrate(empty_dsn)
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        yield connection


def wrong(dsn, schema="jobspec"):
    """Return what is wrong: what was found and what to do, by check."""
    findings = examine(dsn, schema)
    return {one.check: (one.what, one.advice) for one in findings if not one.fine}


def test_all_is_well_with_a_fresh_schema(dsn, run):
    assert wrong(dsn) == {}
    result = run("doctor")
    assert result.exit_code == 0
    checks = [line.split("  ")[0].split() for line in result.stdout.splitlines()[1:]]
    assert all(check[0] == "fine" for check in checks)
    told = json.loads(run("doctor", "--json").stdout)
    assert [one["check"] for one in told] == [
        "connection",
        "version",
        "drift",
        "indexes",
        "dead rows",
        "transactions",
        "clocks",
        "leases",
        "runs",
    ]
    assert all(one["fine"] and one["what"] and one["advice"] is None for one in told)


def test_what_is_wrong_makes_the_exit_code_one_and_says_what_to_do(run, empty_dsn, damaged):
    damaged.execute("alter table jobspec.job_event add column surprise int")
    result = run("doctor", "--dsn", empty_dsn)
    assert result.exit_code == 1
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("WRONG"))
    assert "job_event.surprise is not of the migrations" in line
    assert "put it back" in line
    assert run("doctor", "--json", "--dsn", empty_dsn).exit_code == 1


def test_a_server_that_can_not_be_reached_is_a_finding():
    (found,) = examine("host=127.0.0.1 port=1 connect_timeout=2 password=hidden")
    assert (found.check, found.fine) == ("connection", False)
    assert "hidden" not in found.what
    assert "--dsn" in found.advice


def test_a_schema_without_its_migrations_is_a_finding(empty_dsn):
    assert wrong(empty_dsn) == {
        "version": (
            f"schema jobspec lacks the migrations {', '.join(map(str, read_migrations(SHIPPED)))}",
            "jobspec migrate --schema jobspec",
        )
    }


def test_a_schema_of_newer_code_is_a_finding(empty_dsn, damaged):
    damaged.execute("insert into jobspec.migration values (1000, 'x', 'x')")
    what, _ = wrong(empty_dsn)["version"]
    assert "is newer than this code" in what


def test_an_index_that_is_missing_or_not_valid_is_a_finding(empty_dsn, damaged):
    damaged.execute("drop index jobspec.job_queue_ready")
    assert "index job_queue_ready is missing" in wrong(empty_dsn)["drift"][0]
    damaged.execute(
        "update pg_index set indisvalid = false"
        " where indexrelid = 'jobspec.job_queue_leased'::regclass"
    )
    what, advice = wrong(empty_dsn)["indexes"]
    assert what.startswith("index job_queue_leased of job_queue is not valid")
    assert advice == 'reindex index concurrently "jobspec"."job_queue_leased"'
    assert "job_queue_leased" not in wrong(empty_dsn)["drift"][0]


def test_a_role_that_may_not_create_a_schema_can_not_compare(empty_dsn, damaged):
    role = f"reader_{damaged.info.dbname}"
    damaged.execute(f"create role {role} login")
    try:
        damaged.execute(f"grant usage on schema jobspec to {role}")
        damaged.execute(f"grant select on all tables in schema jobspec to {role}")
        findings = {one.check: one for one in examine(make_conninfo(empty_dsn, user=role))}
        assert findings["drift"].what.startswith("not compared")
        assert all(one.fine for one in findings.values())
    finally:
        damaged.execute(f"drop owned by {role}; drop role {role}")


def test_leases_that_nobody_reclaims_are_a_finding(dsn, clock, connection):
    send(dsn, job())
    claim(connection, lease=timedelta(seconds=1))
    clock.advance(60)
    assert "leases" not in wrong(dsn)
    clock.advance(2)
    what, advice = wrong(dsn)["leases"]
    assert what.startswith("1 lease ran out")
    assert what.endswith("nobody reclaimed its run")
    assert advice.startswith("start a worker")


def test_due_runs_that_no_worker_claims_are_a_finding(dsn, clock):
    send(dsn, job(), {}, {})
    assert "runs" not in wrong(dsn)
    clock.advance(61)
    what, advice = wrong(dsn)["runs"]
    assert what == ("2 runs are due of job job, the oldest for 0:01:01, and no worker claims them")
    assert advice.startswith("start a worker")


async def test_due_runs_that_a_worker_does_not_come_to_are_a_finding(dsn, clock, connection):
    async with working(job(), dsn):
        await until_async(lambda: count(connection, "job_worker") == 1)
    connection.execute(
        "insert into jobspec.job_worker values"
        " (gen_random_uuid(), 'busy', '{job}', jobspec.now(), jobspec.now() + interval '1 day')"
    )
    send(dsn, job())
    clock.advance(300)
    assert "runs" not in wrong(dsn)
    clock.advance(1)
    what, advice = wrong(dsn)["runs"]
    assert what == "1 run is due of job job, the oldest for 0:05:01"
    assert advice == "add workers, or raise --concurrency"


def test_the_waiting_runs_of_a_paused_job_are_told_and_are_fine(dsn, clock):
    send(dsn, job())
    with Client(job(), dsn) as client:
        client.pause("job")
    clock.advance(timedelta(days=1))
    (told,) = (one for one in examine(dsn) if one.check == "runs")
    assert told.fine
    assert told.what.endswith("the job is paused")


def test_many_dead_rows_are_a_finding():
    rows = [
        TableRow("job_queue", 50_000, 10_001, []),
        TableRow("job_event", 10, 9_000, []),
        TableRow("job_step", 100_000, 10_001, []),
    ]
    (found,) = doctor._dead_rows(rows, "jobspec")
    assert found.what == "table job_queue has 10001 dead rows beside 50000"
    assert found.advice.startswith('vacuum analyze "jobspec"."job_queue"')


SESSIONS = {
    "idle": (SessionRow("idle", "session 7", 61, None), "idle in a transaction for 0:01:01"),
    "a long one": (SessionRow("transaction", "session 7", 601, 5), "open for 0:10:01"),
    "a prepared one": (SessionRow("prepared", "prepared x", 601, 5), "open for 0:10:01"),
    "a slot": (SessionRow("slot", "slot x", None, 1_000_001), "reaches 1000001 transactions back"),
    "idle for a moment": (SessionRow("idle", "session 7", 59, 5), None),
    "a short one": (SessionRow("transaction", "session 7", 599, 5), None),
    "a young slot": (SessionRow("slot", "slot x", None, 1000), None),
}


@pytest.mark.parametrize(("session", "said"), SESSIONS.values(), ids=SESSIONS)
def test_what_keeps_vacuum_waiting_is_a_finding(session, said):
    found = [one.what for one in doctor._sessions([session])]
    assert (said is None) == (found == [])
    assert said is None or found[0].endswith(said)


def test_sessions_are_seen_by_what_they_do(dsn, connection):
    def seen():
        rows = fetch(connection, OperationStatements().sessions())
        return {row.name.partition("(")[2].rstrip(")"): row for row in rows}

    with (
        psycopg.connect(dsn, application_name="idler") as idler,
        psycopg.connect(dsn, application_name="holder") as holder,
    ):
        holder.execute("lock jobspec.job_pause")
        idler.execute("select txid_current()")
        (idle,) = [row for name, row in seen().items() if name == "idler"]
        assert (idle.kind, idle.reach is not None) == ("idle", True)
        assert 0 <= idle.age < 60
        idler.rollback()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(idler.execute, "select count(*) from jobspec.job_pause")
            wait_until_blocked(connection)
            assert seen()["idler"].kind == "transaction"
            holder.rollback()
            waiting.result()


def test_clocks_that_differ_are_a_finding():
    database = datetime(2026, 1, 1, tzinfo=UTC)
    second = timedelta(seconds=1)
    assert clocks(database, database - second, database + second, None).fine
    for late in (database + CLOCK_DIFFERENCE, database - CLOCK_DIFFERENCE):
        assert clocks(database, late, late, None).fine
    ahead = database + CLOCK_DIFFERENCE + second
    assert clocks(database, ahead, ahead + second, None).what.endswith("differ by 0:00:03")
    behind = database - CLOCK_DIFFERENCE - second
    assert clocks(database, behind - second, behind, None).what.endswith("differ by 0:00:03")


def test_a_clock_that_was_set_and_forgotten_is_a_finding(empty_dsn, damaged):
    name = damaged.info.dbname
    damaged.execute(f"alter database {name} set jobspec.now = '2026-01-01T00:00:00Z'")
    what, advice = wrong(empty_dsn)["clocks"]
    assert "is set to 2026-01-01" in what
    assert "reset jobspec.now" in advice
