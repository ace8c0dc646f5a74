"""Commands as a person runs them, to migrate, to send and to look: output and exit codes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from clikit import EMAIL, JOBS, jobspec, send_email, stay_in
from enginekit import runs as all_runs
from jobspec_engine.demo import play


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder that the commands run in."""
    stay_in(tmp_path, monkeypatch, {"jobs.yaml": JOBS})
    return tmp_path


@pytest.fixture
def run(folder, on_this_database):
    """Runs a command on this test's database."""
    return jobspec


# --- migrate and drift


def test_migrating_makes_the_schema_and_migrating_again_changes_nothing(run, empty_dsn):
    first = run("migrate", "--dsn", empty_dsn)
    assert first.exit_code == 0
    assert first.stdout.startswith("applied 0001_init\n")
    again = run("migrate", "--dsn", empty_dsn)
    assert (again.exit_code, again.stdout) == (0, "schema jobspec is up to date\n")


def test_a_schema_of_another_name_is_made_and_used(run, empty_dsn):
    assert run("migrate", "--dsn", empty_dsn, "--schema", "other").exit_code == 0
    assert run("runs", "--dsn", empty_dsn, "--schema", "other").stdout == "no runs\n"


def test_a_migrated_schema_has_no_drift(run):
    result = run("drift")
    assert (result.exit_code, result.stdout) == (0, "schema jobspec: no drift\n")
    result = run("drift", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_drift_is_named_and_makes_the_exit_code_one(run, connection):
    connection.execute("alter table jobspec.job_event add column surprise int")
    result = run("drift")
    assert result.exit_code == 1
    assert "surprise" in result.stdout
    result = run("drift", "--json")
    assert result.exit_code == 1
    assert "surprise" in json.dumps(json.loads(result.stdout))


# --- send


def test_a_sent_event_is_told_for_each_job_it_starts(run, connection):
    result = send_email()
    assert result.exit_code == 0
    event, headings, row = result.stdout.splitlines()
    assert event.startswith("event ")
    assert headings.split() == ["job", "outcome", "run", "due"]
    (sent,) = all_runs(connection)
    assert row.split()[:3] == ["email.send", "enqueued", str(sent.id)]


def test_a_duplicate_names_the_run_of_the_first(run, connection):
    send_email()
    row = send_email().stdout.splitlines()[-1]
    (sent,) = all_runs(connection)
    assert row.split() == ["email.send", "duplicate", str(sent.id)]


def test_commands_take_the_specs_that_the_project_names(run, folder, connection):
    (folder / "pyproject.toml").write_text('[tool.jobspec]\npaths = ["jobs.yaml"]\n')
    assert run("send", "email.send", EMAIL).exit_code == 0
    assert run("add", "email.send", EMAIL).exit_code == 0
    assert run("worker", "--until-idle").exit_code == 0
    assert [one.state for one in all_runs(connection)] == ["completed", "completed"]
    assert run("replay", "--job", "email.send").stdout == "no dead letters to replay\n"


@pytest.mark.parametrize(
    "command", [["send", "email.send"], ["add", "email.send"], ["worker"], ["replay", "1"]]
)
def test_commands_that_find_no_specs_say_where_to_name_them(run, command):
    result = run(*command)
    assert (result.exit_code, "set `paths` under [tool.jobspec]" in result.stderr) == (2, True)


def test_what_became_of_an_event_is_told_as_json(run, connection):
    sent = json.loads(send_email("--json", "--id", "evt-1", "--ts", "5").stdout)
    (enqueued,) = all_runs(connection)
    (job,) = sent["jobs"]
    assert (sent["event_id"], job["outcome"], job["run_id"]) == ("evt-1", "enqueued", enqueued.id)
    assert connection.execute("select ts from jobspec.job_event").fetchone() == (5,)


def test_data_comes_from_standard_input(run, connection):
    result = run("send", "email.send", "-", "--jobs", "jobs.yaml", input=EMAIL)
    assert result.exit_code == 0
    assert connection.execute("select data->>'to' from jobspec.job_event").fetchone() == (
        "ada@example.com",
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("{", "DATA is not JSON"),
        ("[1]", "DATA must be a JSON object, such as"),
        ("[" * 100_000, "DATA is nested too deep"),
    ],
)
def test_data_that_is_not_a_json_object_is_misuse(run, connection, data, problem):
    result = run("send", "email.send", data, "--jobs", "jobs.yaml")
    assert result.exit_code == 2
    assert problem in result.stderr
    assert connection.execute("select count(*) from jobspec.job_event").fetchone() == (0,)


def test_standard_input_that_is_not_text_is_misuse(folder):
    result = jobspec("send", "email.send", "-", "--jobs", "jobs.yaml", input=b"\xff")
    assert result.exit_code == 2
    assert "DATA is not JSON" in result.stderr


def test_an_event_that_can_not_be_kept_is_refused_in_a_sentence(run):
    result = run("send", "x" * 2000, "--jobs", "jobs.yaml")
    assert result.exit_code == 1
    assert result.stderr == "Error: event name must have 1 to 1024 bytes, this has 2000\n"


def test_an_event_that_starts_no_job_says_which_events_do(run):
    result = run("send", "email.sned", "--jobs", "jobs.yaml")
    assert result.exit_code == 0
    assert result.stderr == (
        "no job has the trigger `email.sned` (a run that waits for it goes on);"
        " did you mean `email.send`?\n"
    )


def test_an_event_that_is_like_none_says_which_events_start_jobs(run):
    assert run("send", "x", "--jobs", "jobs.yaml").stderr.endswith(
        "; there are `email.send`, `github/push`\n"
    )


def test_an_event_where_only_schedules_start_jobs_says_so(run, folder):
    spec = 'jobs: [{id: a, triggers: [{cron: "0 4 * * *"}], handler: "handlers:wait"}]'
    (folder / "cron.yaml").write_text(spec, encoding="utf-8")
    result = run("send", "nightly", "--jobs", "cron.yaml")
    assert result.stderr.endswith("; no event starts any\n")


def test_sending_without_specs_is_misuse_that_names_the_option(folder):
    result = jobspec("send", "email.send", EMAIL)
    assert result.exit_code == 2
    assert "--jobs" in result.stderr


# --- add

JOBS_OPTION = ("--jobs", "jobs.yaml")


def test_a_run_is_added_as_the_options_say(run, connection):
    options = ("--delay", "5m", "--priority", "-10", "--max-attempts", "2")
    result = run("add", "email.send", EMAIL, *JOBS_OPTION, *options)
    (added,) = all_runs(connection)
    assert result.stdout.splitlines()[-1].split()[:3] == ["email.send", "enqueued", str(added.id)]
    assert (added.run_at - added.enqueued_at, added.priority, added.max_attempts) == (
        timedelta(minutes=5),
        -10,
        2,
    )


def test_a_run_is_added_for_a_time(run, connection):
    run("add", "email.send", EMAIL, *JOBS_OPTION, "--at", "2050-01-31T12:00:00+02:00")
    assert all_runs(connection)[0].run_at == datetime(2050, 1, 31, 10, tzinfo=UTC)


def test_a_run_joins_the_one_that_waits_with_its_key(run, connection):
    keyed = ("--job-key", "a", "--job-key-mode", "debounce", "--max-debounce", "10m", "--json")
    told = [
        json.loads(run("add", "email.send", EMAIL, *JOBS_OPTION, "--delay", "1m", *keyed).stdout)
        for _ in range(2)
    ]
    (joined,) = all_runs(connection)
    assert [one["outcome"] for one in told] == ["enqueued", "coalesced"]
    assert {one["run_id"] for one in told} == {joined.id}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["email.snd", "{}"], "there is no job `email.snd` among the compiled jobs; did you mean"),
        (["email.send", "[]"], "DATA must be a JSON object"),
        (["email.send", "--at", "soon"], "write a time such as"),
        (["email.send", "--at", "0001-01-01T00:00"], "write a time such as"),
        (["email.send", "--at", "2050-01-01", "--delay", "5m"], "run_at or delay, not both"),
        (["email.send", "--job-key-mode", "debounce"], "needs a job_key"),
    ],
)
def test_a_run_that_can_not_be_added_is_refused(run, connection, options, problem):
    result = run("add", *options, *JOBS_OPTION)
    assert (result.exit_code != 0, problem in result.stderr) == (True, True), result.output
    assert all_runs(connection) == []


# --- runs


def test_runs_are_listed_newest_first(run):
    assert run("runs").stdout == "no runs\n"
    send_email()
    run("send", "github/push", '{"repository": "acme/web"}', "--jobs", "jobs.yaml")
    headings, newest, oldest = run("runs").stdout.splitlines()
    assert headings.split() == ["run", "job", "state", "attempt", "events", "when"]
    assert newest.split()[1:6] == ["system.code-graph-refresh", "pending", "0", "of", "5"]
    assert oldest.split()[1:3] == ["email.send", "pending"]


def test_runs_are_filtered_by_job_and_state_and_limited(run):
    for number in range(3):
        run("send", "github/push", f'{{"repository": "{number}"}}', "--jobs", "jobs.yaml")
    send_email()
    run("worker", "jobs.yaml", "--until-idle")

    def job_ids(*filters):
        return [row["job_id"] for row in json.loads(run("runs", "--json", *filters).stdout)]

    assert job_ids("--job", "email.send") == ["email.send"]
    assert job_ids("--state", "completed") == ["email.send"]
    assert job_ids("--state", "pending", "--limit", "2") == ["system.code-graph-refresh"] * 2
    assert job_ids("--job", "email.send", "--state", "pending") == []


def test_what_a_run_returned_is_a_value_in_json(run):
    send_email()
    run("worker", "jobs.yaml", "--until-idle")
    (told,) = json.loads(run("runs", "--json").stdout)
    whole = json.loads(run("run", str(told["run_id"]), "--json").stdout)
    assert told["result"] == whole["result"] == "sent to ada@example.com"


def test_why_a_run_failed_is_shown_as_it_was_said(run, folder):
    text = JOBS.replace("idempotency: event.data.key", "retries: 0")
    (folder / "jobs.yaml").write_text(text, encoding="utf-8")
    run("send", "email.send", '{"to[red]": ":x:"}', "--jobs", "jobs.yaml")
    assert run("worker", "jobs.yaml", "--until-idle").exit_code == 0
    headings, row = run("runs").stdout.splitlines()
    assert headings.split()[-1] == "why"
    assert row.rstrip().endswith("KeyError: 'to'")


def test_a_message_is_not_read_as_markup(run, connection, folder):
    text = 'async def fail(context):\n    raise ValueError("[red]:x: no[/nope]")\n'
    (folder / "failing_handlers.py").write_text(text, encoding="utf-8")
    spec = (
        "jobs: [{id: fail, retries: 0, triggers: [{event: fail}], handler: failing_handlers:fail}]"
    )
    (folder / "fail.yaml").write_text(spec, encoding="utf-8")
    run("send", "fail", "--jobs", "fail.yaml")
    run("worker", "fail.yaml", "--until-idle")
    assert "ValueError: [red]:x: no[/nope]" in run("runs").stdout


# --- demo


def test_the_demo_says_the_same_as_it_is_played(run):
    result = run("demo")
    assert result.exit_code == 0
    assert f"from {play.SENDERS} senders" in result.stdout
    assert "49  coalesced" in result.stdout
