"""The commands about runs that fail: what they print, and their exit codes."""

from __future__ import annotations

import json
import sys
from datetime import datetime

import pytest

from clikit import jobspec, stay_in
from enginekit import claim, run_of
from enginekit import runs as all_runs
from jobspec_engine.replay import REASONS

JOBS = """
jobs:
  - id: pay
    triggers: [{event: pay}]
    handler: pay:pay
    idempotency: event.data.a + event.data.b
    retries: 1
    retry: {policy: fixed, delay: 1ms}
"""
HANDLERS = """
async def pay(context):
    if context.event.data.get("fine"):
        return "paid"
    raise ValueError("no money\\non the account")
"""
FAILING = '{"a": "x", "card": "1234"}'
BROKEN = '{"a": true, "b": true}'


@pytest.fixture
def run(tmp_path, on_this_database, monkeypatch):
    """Runs a command on this test's database."""
    stay_in(tmp_path, monkeypatch, {"jobs.yaml": JOBS, "pay.py": HANDLERS})
    yield jobspec
    sys.modules.pop("pay", None)


@pytest.fixture
def send(run, connection):
    """Sends an event, and returns its run's number."""

    def sent(data=FAILING):
        assert run("send", "pay", data, "--jobs", "jobs.yaml").exit_code == 0
        return str(all_runs(connection)[-1].id)

    return sent


@pytest.fixture
def dead(run, send, connection):
    """The number of a run that used up its attempts."""
    number = send()
    while all_runs(connection)[-1].state == "pending":
        assert run("worker", "jobs.yaml", "--until-idle").exit_code == 0
    return number


def rows(result):
    """The rows of a table, without its headings, as lists of words."""
    return [line.split() for line in result.stdout.splitlines()[1:]]


# --- run


def test_a_run_is_shown_with_its_history_and_its_last_traceback(run, dead):
    result = run("run", dead)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["run_id", dead]
    assert "state                failed" in lines
    assert "reason               attempts-used" in lines
    assert 'event_data           {"a": "x", "card": "1234"}' in lines
    headings = next(at for at, line in enumerate(lines) if line.startswith("attempt  worker"))
    first, second = lines[headings + 1 : headings + 3]
    assert (first.split()[0], second.split()[0]) == ("1", "2")
    assert first.endswith("ValueError: no money")
    assert result.stdout.count('raise ValueError("no money\\non the account")') == 1
    assert lines[-1] == "on the account"


def test_a_run_is_told_as_json(run, dead):
    told = json.loads(run("run", dead, "--json").stdout)
    assert (told["run_id"], told["state"], told["attempt"]) == (int(dead), "failed", 2)
    assert told["event_data"] == {"a": "x", "card": "1234"}
    assert [one["attempt"] for one in told["history"]] == [1, 2]
    assert "Traceback" in told["history"][0]["traceback"]


def test_a_run_without_a_history_is_shown_too(run, send):
    lines = run("run", send()).stdout.splitlines()
    assert "state                pending" in lines
    assert not any(line.startswith("attempt  worker") for line in lines)


def test_a_run_that_does_not_exist_is_a_failure(run):
    result = run("run", "404")
    said = "Error: run 404: there is no such run; if it has ended it may have been pruned\n"
    assert (result.exit_code, result.stderr) == (1, said)


def test_a_run_is_shown_with_its_keys(run, send):
    shown = run("run", send()).stdout
    assert "idempotency_key      x\n" in shown


def test_times_are_iso_8601_in_json(run, send):
    number = send()
    (listed,) = json.loads(run("runs", "--json").stdout)
    times = [json.loads(run("run", number, "--json").stdout)["enqueued_at"], listed["run_at"]]
    assert all("T" in one and datetime.fromisoformat(one).utcoffset() is not None for one in times)


def test_a_run_that_failed_and_waits_tells_its_last_error_and_when_it_is_due(run, tmp_path):
    text = JOBS.replace("delay: 1ms", "delay: 1h")
    (tmp_path / "jobs.yaml").write_text(text, encoding="utf-8")
    run("send", "pay", FAILING, "--jobs", "jobs.yaml")
    run("worker", "jobs.yaml", "--until-idle")
    row = run("runs").stdout.splitlines()[1]
    assert "pending" in row
    assert " due 2" in row
    assert row.rstrip().endswith("ValueError: no money")


def test_a_run_that_ended_tells_when(run, dead):
    assert " ended 2" in run("runs").stdout


# --- dead-letters


def test_dead_letters_are_listed_with_why_the_latest_first(run, dead, send):
    broken = send(BROKEN)
    result = run("dead-letters")
    assert result.exit_code == 0
    first, second = rows(result)
    assert (first[:2], second[:2]) == ([broken, "pay"], [dead, "pay"])
    assert "key-error" in first
    assert "attempts-used" in second
    assert result.stdout.splitlines()[2].rstrip().endswith("ValueError: no money")


def test_dead_letters_are_told_with_data_error_traceback_and_history(run, dead):
    (letter,) = json.loads(run("dead-letters", "--json").stdout)
    assert (letter["run_id"], letter["reason"]) == (int(dead), "attempts-used")
    assert letter["event_data"] == {"a": "x", "card": "1234"}
    assert letter["message"] == "ValueError: no money\non the account"
    assert [entry["error"] for entry in letter["history"]] == [letter["message"]] * 2
    assert all("Traceback" in entry["traceback"] for entry in letter["history"])


def test_dead_letters_are_picked_by_job_reason_and_time(run, dead, send):
    broken = send(BROKEN)

    def picked(*options):
        return [row[0] for row in rows(run("dead-letters", *options))]

    assert picked("--reason", "key-error") == [broken]
    assert picked("--reason", "attempts-used") == [dead]
    assert picked("--job", "pay", "--since", "1h") == [broken, dead]
    assert picked("--limit", "1") == [broken]
    for options in (("--job", "other"), ("--since", "2100-01-01T00:00:00+00:00")):
        assert run("dead-letters", *options).stdout == "no dead letters\n"


@pytest.mark.parametrize("since", ["yesterday", "2", "2 h"])
def test_a_time_that_is_none_is_misuse(run, since):
    result = run("dead-letters", "--since", since)
    assert result.exit_code == 2
    assert "write `2h`, `7d` or a time" in result.stderr


@pytest.mark.parametrize("command", ["dead-letters", "events"])
def test_a_time_before_all_times_is_misuse(run, command):
    result = run(command, "--since", "36501d")
    assert (result.exit_code, "write 36500d or less" in result.stderr) == (2, True)
    assert run(command, "--since", "36500d").exit_code == 0


# --- cancel


def test_runs_are_cancelled_by_their_numbers(run, send, connection):
    first, second = send('{"a": 1}'), send('{"a": 2}')
    result = run("cancel", first, second)
    assert result.exit_code == 0
    assert rows(result) == [[first, "cancelled"], [second, "cancelled"]]
    assert {one.state for one in all_runs(connection)} == {"cancelled"}


def test_a_running_run_is_requested_to_end(run, send, connection):
    number = send()
    claim(connection, "pay")
    told = json.loads(run("cancel", number, "--json").stdout)
    assert told == [{"run_id": int(number), "outcome": "requested"}]


def test_runs_are_cancelled_by_their_keys(run, send):
    number = send()
    assert rows(run("cancel", "--job", "pay", "--idempotency-key", "x")) == [[number, "cancelled"]]
    again = run("cancel", "--job", "pay", "--job-key", "x")
    assert again.exit_code == 1
    assert again.stdout == (
        "no run that waits or runs goes by this key; `jobspec run RUN` shows a run's own\n"
    )


def test_a_run_that_nobody_knows_makes_the_exit_code_one(run, send):
    number = send()
    result = run("cancel", number, "404")
    assert result.exit_code == 1
    first, second = rows(result)
    assert (first, second[:2]) == ([number, "cancelled"], ["404", "unknown"])
    assert "there is no such run; if it has ended it may have been pruned" in result.stdout


def test_what_an_outcome_does_not_say_by_itself_is_told(run, send):
    waiting = send()
    assert "it did not end without success" in run("replay", waiting, "--jobs", "jobs.yaml").stdout
    unknown = run("replay", "404", "--jobs", "jobs.yaml").stdout
    assert "there is no such run, or these specs lack its job" in unknown
    run("cancel", waiting)
    assert "it had ended before" in run("cancel", waiting).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--job", "pay"],
        ["--job-key", "x"],
        ["1", "--job", "pay", "--job-key", "x"],
        ["--job", "pay", "--job-key", "x", "--idempotency-key", "x"],
    ],
)
def test_to_cancel_needs_either_numbers_or_one_key_of_a_job(run, arguments):
    result = run("cancel", *arguments)
    assert result.exit_code == 2
    assert "name runs, or --job with --idempotency-key or --job-key" in result.stderr


# --- replay


def test_a_dead_run_is_replayed_and_replaying_again_tells_its_replay(run, dead, connection):
    first = run("replay", dead, "--jobs", "jobs.yaml")
    assert first.exit_code == 0
    new = str(all_runs(connection)[-1].id)
    row, summary = rows(first)
    assert (row[:3], summary) == ([dead, "enqueued", new], ["1", "enqueued"])
    again = run("replay", dead, "--jobs", "jobs.yaml", "--json")
    assert again.exit_code == 0
    (told,) = json.loads(again.stdout)
    assert (told["outcome"], told["replayed_as"]) == ("duplicate", int(new))
    said = run("replay", dead, "--jobs", "jobs.yaml").stdout
    assert f"it was replayed before: to try once more, replay {new}" in said


def test_a_run_is_replayed_with_data_from_a_file(run, dead, connection, tmp_path):
    (tmp_path / "fine.json").write_text('{"fine": true}', encoding="utf-8")
    run("replay", dead, "--jobs", "jobs.yaml", "--data", "fine.json")
    run("worker", "jobs.yaml", "--until-idle")
    assert (all_runs(connection)[-1].state, all_runs(connection)[-1].result) == (
        "completed",
        "paid",
    )


def test_a_run_is_replayed_with_data_on_the_command_line(run, dead, connection):
    told = run("replay", dead, "--jobs", "jobs.yaml", "--data", ' {"fine": true}')
    assert told.exit_code == 0
    run("worker", "jobs.yaml", "--until-idle")
    assert all_runs(connection)[-1].result == "paid"


def test_dead_letters_are_replayed_by_reason_and_what_is_broken_yet_is_told(run, dead, send):
    broken = send(BROKEN)
    result = run("replay", "--reason", "key-error", "--jobs", "jobs.yaml")
    assert result.exit_code == 1
    assert rows(result)[0][:2] == [broken, "unresolved"]
    assert "adds values that can't be added" in result.stdout
    edited = run("replay", "--job", "pay", "--jobs", "jobs.yaml", "--data", "-", input='{"a": 1}')
    assert [row[:2] for row in rows(edited)[:2]] == [[dead, "enqueued"], [broken, "enqueued"]]


def test_a_rate_spaces_the_replays(run, dead, send, connection):
    send(BROKEN)
    rate = ("--rate", "6/m", "--data", "-")
    run("replay", "--since", "1d", "--jobs", "jobs.yaml", *rate, input='{"a": 1}')
    *_, first, second = all_runs(connection)
    assert 9.9 < (second.run_at - first.run_at).total_seconds() < 10.1


def test_a_dry_run_says_what_would_be_and_does_nothing(run, dead, connection):
    result = run("replay", dead, "--jobs", "jobs.yaml", "--dry-run")
    assert rows(result)[0] == [dead, "enqueued"]
    assert run_of(connection).replayed_as is None


def test_where_nothing_is_dead_nothing_is_replayed(run):
    result = run("replay", "--job", "pay", "--jobs", "jobs.yaml")
    assert (result.exit_code, result.stdout) == (0, "no dead letters to replay\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "name runs, or say which by --job, --reason or --since"),
        (["1", "--job", "pay"], "name runs, or say which by --job, --reason or --since"),
        (["1", "--rate", "fast"], "write a number and a unit, such as `10/s`"),
        (["1", "--rate", "0/s"], "write a number and a unit, such as `10/s`"),
        (["1", "--data", "-"], "--data is not JSON"),
        (["1", "--data", "{"], "--data is not JSON"),
        (["1", "--data", "nosuch.json"], "neither a JSON object nor a file that can be read: No"),
        (["1", "--reason", "none"], "'none' is not one of"),
    ],
)
def test_misuse_of_a_replay_is_told(run, arguments, problem):
    result = run("replay", *arguments, "--jobs", "jobs.yaml", input="{")
    assert result.exit_code == 2
    assert problem in result.stderr


def test_data_that_is_no_object_is_misuse(run):
    result = run("replay", "1", "--jobs", "jobs.yaml", "--data", "-", input="[1]")
    assert result.exit_code == 2
    assert "--data must be a JSON object" in result.stderr


def test_every_reason_can_be_asked_for(run):
    for reason in REASONS:
        assert run("dead-letters", "--reason", reason).exit_code == 0


def test_replaying_a_job_that_the_specs_lack_says_which_was_meant(run):
    result = run("replay", "--job", "payy", "--jobs", "jobs.yaml")
    assert result.stderr == (
        "there is no job `payy` among the compiled jobs; did you mean `pay`?\n"
    )
