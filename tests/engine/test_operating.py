"""Commands for those who look after an engine: what they print, and their exit codes."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from datetime import timedelta

import pytest

from clikit import jobspec
from enginekit import claim, count, job, jobs, run_of, run_until_idle, runs, until_async, working
from jobspec_engine import Client, Event, NonRetriable
from jobspec_engine.calls import fetch
from jobspec_engine.operation_statements import OperationStatements
from jobspec_engine.stats import METRICS, Figure, prometheus

DAY = timedelta(days=1)
IDS = itertools.count()
BOTH = {"idempotency": "event.data.key", "debounce": {"period": "1h"}}


@pytest.fixture
def run(on_this_database):
    """Runs a command on this test's database."""
    return jobspec


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
        "Error: nothing was paused: no worker and no run knows a job `jobb`; did you mean `job`?\n"
    )
    assert run("pause", "email.send").stderr.endswith("; name specs that have it by --jobs\n")
    assert count(connection, "job_pause") == 1


def test_resuming_a_job_that_nobody_knows_says_so(dsn, run):
    send(dsn, job())
    refused = run("resume", "jobb")
    assert refused.exit_code == 1
    assert refused.stderr == (
        "Error: nothing was resumed: no worker and no run knows a job `jobb`; did you mean `job`?\n"
    )
    assert run("resume", "email.send").stderr.endswith("tells which jobs are paused\n")


@pytest.mark.parametrize(
    "command",
    [
        ("runs", "--job", "jobb"),
        ("dead-letters", "--job", "jobb"),
        ("cancel", "--job", "jobb", "--job-key", "a"),
    ],
)
def test_asking_about_a_job_that_nobody_knows_says_which_was_meant(dsn, run, command):
    send(dsn, job())
    said = "no worker and no run knows a job `jobb`; did you mean `job`?\n"
    assert run(*command).stderr == said
    known = ["job" if word == "jobb" else word for word in command]
    assert run(*known).stderr == ""


def test_a_job_of_a_spec_is_paused_before_it_ever_ran(connection, run, tmp_path):
    spec = tmp_path / "jobs.yaml"
    spec.write_text("jobs: [{id: new.job, triggers: [{event: e}]}]", encoding="utf-8")
    refused = run("pause", "new.jop", "--jobs", str(spec))
    assert refused.exit_code == 1
    assert "nothing was paused: these specs have no job `new.jop`; did you mean `new.job`?" in (
        refused.stderr
    )
    assert run("pause", "new.job", "--jobs", str(spec)).stdout == "job new.job is paused\n"
