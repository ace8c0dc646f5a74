"""Commands for those who look after an engine: what they print, and their exit codes."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.conninfo import make_conninfo

from databases import wait_until_blocked
from enginekit import claim, count, job, jobs, run_of, run_until_idle, runs, until_async, working
from jobspec.cli import main
from jobspec_engine import Client, Event, NonRetriable, doctor
from jobspec_engine.calls import fetch
from jobspec_engine.doctor import CLOCK_DIFFERENCE, clocks, examine
from jobspec_engine.migrate import SHIPPED, migrate, read_migrations
from jobspec_engine.operation_statements import OperationStatements, SessionRow, TableRow
from jobspec_engine.stats import METRICS, Figure, prometheus

DAY = timedelta(days=1)
IDS = itertools.count()
BOTH = {"idempotency": "event.data.key", "debounce": {"period": "1h"}}


@pytest.fixture
def run(dsn, monkeypatch):
    """Runs a command on this test's database."""
    monkeypatch.setenv("JOBSPEC_DSN", dsn)
    return lambda *arguments: CliRunner().invoke(main, list(arguments), prog_name="jobspec")


def send(dsn, compiled, *data):
    """Send events whose ids are in the order they are sent."""
    events = [Event("event", one, id=f"{next(IDS):04}") for one in data or [{}]]
    with Client(compiled, dsn) as client:
        return client.send_many(events)


async def fails(context):
    raise NonRetriable("no")


# --- events


def became(connection):
    """Return what became of each event, the oldest first."""
    rows = fetch(connection, OperationStatements().events(None, None, 100))
    return [[(one["outcome"], one["run"], one["state"]) for one in row.jobs] for row in rows][::-1]


async def test_an_event_tells_the_run_it_made_and_how_that_stands(dsn, connection):
    send(dsn, job())
    send(dsn, job(handler=fails), {})
    (first, second) = (one.id for one in runs(connection))
    claim(connection, limit=1)
    assert became(connection) == [
        [("enqueued", first, "running")],
        [("enqueued", second, "pending")],
    ]


def test_a_duplicate_tells_the_run_of_the_first(dsn, connection):
    send(dsn, job(idempotency="event.data.key"), *[{"key": "k"}] * 2)
    send(dsn, job(idempotency="event.data.key"), {"key": "k"})
    made = run_of(connection).id
    told = [("duplicate", made, "pending")]
    assert became(connection) == [[("enqueued", made, "pending")], told, told]


def test_every_event_of_a_burst_tells_the_run_that_it_became_a_part_of(dsn, connection):
    compiled = job(debounce={"period": "1h"})
    send(dsn, compiled, {})
    send(dsn, compiled, {}, {})
    made = run_of(connection).id
    first, *others = became(connection)
    assert first == [("enqueued", made, "pending")]
    assert others == [[("coalesced", made, "pending")]] * 2


def test_a_duplicate_of_an_event_that_coalesced_with_it_tells_the_run_of_both(dsn, connection):
    send(dsn, job(**BOTH), {"key": 1})
    send(dsn, job(**BOTH), {"key": 2}, {"key": 2})
    made = run_of(connection).id
    outcomes = [outcome for ((outcome, run_id, _),) in became(connection) if run_id == made]
    assert sorted(outcomes) == ["coalesced", "duplicate", "enqueued"]


def test_an_event_whose_key_can_not_be_resolved_tells_its_dead_run(dsn, connection):
    send(dsn, job(idempotency="event.data.a + event.data.b"), {"a": True, "b": True})
    assert became(connection) == [[("dead-letter", run_of(connection).id, "failed")]]


def test_an_event_is_told_for_each_job_and_one_without_a_job_too(dsn, connection):
    compiled = jobs(a={}, b={"debounce": {"period": "1h"}}, c={"event": "other"})
    with Client(compiled, dsn) as client:
        client.send("event", {})
        client.send("nothing", {})
    rows = fetch(connection, OperationStatements().events(None, None, 100))
    assert [[one["job"] for one in row.jobs] for row in rows] == [[], ["a", "b"]]


def test_a_job_that_was_added_by_key_is_told_as_an_event(dsn, connection):
    with Client(job(), dsn) as client:
        for _ in range(2):
            client.add_job("job", job_key="k", delay=DAY)
        client.add_job("job")
    outcomes = [[outcome for outcome, _, _ in jobs] for jobs in became(connection)]
    assert outcomes == [["enqueued"], ["coalesced"], ["enqueued"]]


def test_an_event_that_was_deleted_by_hand_can_be_sent_again(dsn, connection):
    compiled = job(debounce={"period": "1h"})
    with Client(compiled, dsn) as client:
        for _ in range(2):
            made = client.send("event", {}, id="e").jobs[0]
            assert made.outcome == "enqueued"
            connection.execute("delete from jobspec.job_event; delete from jobspec.job_queue")
    row = connection.execute("select outcome, run_id from jobspec.job_dispatch").fetchone()
    assert row == ("enqueued", made.run_id)


def test_events_are_listed_newest_first_by_name_and_time(dsn, clock, run):
    compiled = job()
    with Client(compiled, dsn) as client:
        client.send("event", {"n": 1}, id="old")
        clock.advance(DAY)
        client.send("event", {"n": 2}, id="new")
        client.send("other", {}, id="other")
    table = run("events").stdout.splitlines()
    assert table[0].split() == ["event", "name", "received", "job", "outcome", "run", "state"]
    assert [line.split()[0] for line in table[1:]] == ["other", "new", "old"]
    ids = lambda *options: [one["event_id"] for one in json.loads(run("events", *options).stdout)]  # noqa: E731
    assert ids("--json", "--name", "event") == ["new", "old"]
    assert ids("--json", "--since", "2h") == ["other", "new"]
    assert ids("--json", "--since", (clock.START + DAY).isoformat()) == ["other", "new"]
    assert ids("--json", "--limit", "1") == ["other"]
    (told,) = json.loads(run("events", "--json", "--name", "event", "--since", "1h").stdout)
    assert told["data"] == {"n": 2}
    assert told["jobs"][0]["outcome"] == "enqueued"
    assert run("events", "--name", "none").stdout == "no events\n"


# --- stats


def figures(connection, **options):
    found = defaultdict(dict)
    for one in fetch(connection, OperationStatements().stats(**options)):
        found[one.metric][one.job, one.kind] = one.value
    return found


async def test_figures_count_runs_by_job_and_state_and_dead_letters_by_reason(
    dsn, clock, connection
):
    compiled = jobs(a={"handler": fails}, b={}, c={"debounce": {"period": "1h"}})
    send(dsn, compiled, {})
    await run_until_idle(compiled, dsn)
    send(dsn, jobs(b={}), {}, {}, {})
    claim(connection, "b", limit=1, lease=timedelta(seconds=5))
    clock.advance(60)
    told = figures(connection)
    assert told["runs"] == {
        ("a", "failed"): 1,
        ("b", "completed"): 1,
        ("b", "pending"): 2,
        ("b", "running"): 1,
        ("c", "pending"): 1,
    }
    assert told["due_runs"] == {("b", None): 2}
    assert told["oldest_due_seconds"] == {("b", None): 60}
    assert told["expired_leases"] == {(None, None): 1}
    assert told["dead_letters"] == {("a", "not-retriable"): 1}


async def test_figures_tell_what_is_paused_and_how_many_workers_there_are(dsn, clock, connection):
    with Client(job(), dsn) as client:
        client.pause("job")
    async with working(job(), dsn), working(job(), dsn):
        await until_async(lambda: count(connection, "job_worker") == 2)
        assert figures(connection)["workers"] == {(None, None): 2}
        clock.advance(61)
        assert figures(connection)["workers"] == {(None, None): 0}
    assert figures(connection)["paused"] == {("job", None): 1}


def test_figures_count_no_more_than_a_bound(dsn, connection):
    send(dsn, job(), *[{}] * 10)
    assert figures(connection, limit=3)["runs"] == {("job", "pending"): 3}


def test_figures_tell_the_size_of_each_table_by_the_planners_estimate(dsn, connection):
    send(dsn, job(), *[{}] * 10)
    connection.execute("analyze jobspec.job_queue")
    assert figures(connection)["rows"][None, "job_queue"] == 10


SAMPLE = re.compile(r'(jobspec_[a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\} (-?[0-9.e+]+)')


def test_stats_are_in_the_format_of_prometheus(dsn, run, connection):
    send(dsn, jobs(**{'odd "job"\\': {}}), {})
    result = run("stats")
    assert result.exit_code == 0
    names = []
    for line in result.stdout.splitlines():
        if line.startswith("# HELP "):
            names.append(line.split()[2])
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {names[-1]} gauge"
        else:
            assert SAMPLE.fullmatch(line)[1] == names[-1], line
    assert len(names) == len(set(names))
    assert (
        'jobspec_runs{schema="jobspec",job="odd \\"job\\"\\\\",state="pending"} 1\n'
        in result.stdout
    )


def test_a_figure_is_written_with_its_labels_escaped():
    text = prometheus([Figure("dead_letters", 'a\n"\\', "crash-loop", 2.5)], "s")
    help_, kind, sample = text.splitlines()
    assert help_ == f"# HELP jobspec_dead_letters {METRICS['dead_letters'].help}"
    assert kind == "# TYPE jobspec_dead_letters gauge"
    assert sample == 'jobspec_dead_letters{schema="s",job="a\\n\\"\\\\",reason="crash-loop"} 2.5'


# --- prune, pause and resume


async def test_prune_deletes_what_is_older_and_tells_how_much(dsn, clock, connection, run):
    send(dsn, job())
    await run_until_idle(job(), dsn)
    clock.advance(2 * DAY)
    assert json.loads(run("prune", "--json").stdout)["runs"] == 0
    tried = run("prune", "--runs", "1d", "--events", "1d", "--dry-run")
    assert tried.stdout.splitlines()[1:3] == [
        "runs: 1 would be deleted",
        "events: 1 would be deleted",
    ]
    assert (count(connection, "job_queue"), count(connection, "job_event")) == (1, 1)
    result = run("prune", "--runs", "1d", "--events", "forever", "--batch", "1")
    assert result.stdout.splitlines() == [
        "dead letters: 0 deleted",
        "runs: 1 deleted",
        "events: 0 deleted",
        "keys: 0 deleted",
    ]
    assert run("prune", "--events", "47h").stdout.splitlines()[2] == "events: 1 deleted"


def test_an_age_without_a_unit_says_that_the_unit_is_missing(run):
    result = run("prune", "--runs", "30")
    assert result.exit_code == 2
    assert "the unit is missing: write `30d` for days, or s, m or h" in result.stderr


@pytest.mark.parametrize("age", ["d", "-1d", "1y", "36501d", "99999999999999999999d", ""])
def test_an_age_that_is_none_is_misuse(run, age):
    result = run("prune", "--runs", age)
    assert result.exit_code == 2
    assert "write `12h`, `30d` (up to `36500d`) or `forever`" in result.stderr


async def test_a_job_is_paused_and_resumed_by_command(dsn, connection, run):
    send(dsn, job())
    assert run("pause", "job").stdout == "job job is paused\n"
    assert run("pause", "job").stdout == "job job was paused already\n"
    await run_until_idle(job(), dsn)
    assert run_of(connection).state == "pending"
    assert run("resume", "job").stdout == "job job goes on\n"
    assert run("resume", "job").stdout == "job job was not paused\n"
    await run_until_idle(job(), dsn)
    assert run_of(connection).state == "completed"


def test_pausing_a_job_that_nobody_knows_says_so(dsn, connection, run):
    send(dsn, job())
    assert run("pause", "job").stderr == ""
    refused = run("pause", "jobb")
    assert refused.exit_code == 1
    assert refused.stderr == (
        "Error: no worker and no run knows a job `jobb`: nothing was paused;"
        " name specs that have it by --jobs\n"
    )
    assert count(connection, "job_pause") == 1


def test_resuming_a_job_that_nobody_knows_says_so(dsn, run):
    send(dsn, job())
    refused = run("resume", "jobb")
    assert refused.exit_code == 1
    assert refused.stderr == (
        "Error: no worker and no run knows a job `jobb`: nothing was resumed;"
        " `jobspec stats` tells which jobs are paused\n"
    )


def test_a_job_of_a_spec_is_paused_before_it_ever_ran(connection, run, tmp_path):
    spec = tmp_path / "jobs.yaml"
    spec.write_text("jobs: [{id: new.job, triggers: [{event: e}]}]", encoding="utf-8")
    refused = run("pause", "new.jop", "--jobs", str(spec))
    assert refused.exit_code == 1
    assert "these specs have no job `new.jop`: nothing was paused; did you mean `new.job`?" in (
        refused.stderr
    )
    assert run("pause", "new.job", "--jobs", str(spec)).stdout == "job new.job is paused\n"


# --- doctor


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
    assert what.startswith("1 leases ran out")
    assert advice.startswith("start a worker")


def test_due_runs_that_no_worker_claims_are_a_finding(dsn, clock):
    send(dsn, job(), {}, {})
    assert "runs" not in wrong(dsn)
    clock.advance(61)
    what, advice = wrong(dsn)["runs"]
    assert what == ("2 runs of job job are due, the oldest for 0:01:01, and no worker claims them")
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
    assert what == "1 runs of job job are due, the oldest for 0:05:01"
    assert advice == "add workers, or raise --concurrency"


def test_the_waiting_runs_of_a_paused_job_are_told_and_are_fine(dsn, clock):
    send(dsn, job())
    with Client(job(), dsn) as client:
        client.pause("job")
    clock.advance(DAY)
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
