"""`jobspec key`: a key explained, for a template or for the options of a job."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from jobspec.cli import main

KEY = "event.data.installationId + '/' + event.data.repoOwner"
EVENT = {"name": "github/push", "data": {"installationId": 12345678, "repoOwner": "acme"}}
JOBS = """
jobs:
  - id: refresh
    triggers: [{event: github/push}]
    debounce: {key: event.data.installationId + '/' + event.data.repoOwner, period: 2m}
    concurrency: [{limit: 1, key: event.data.repoOwner}, {limit: 9, scope: env, key: "'all'"}]
  - id: plain
    triggers: [{event: github/push}]
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.yaml").write_text(JOBS, encoding="utf-8")
    (tmp_path / "event.json").write_text(json.dumps(EVENT), encoding="utf-8")

    def run(*arguments, **more):
        return CliRunner().invoke(main, ["key", *arguments], **more)

    return run


def test_a_key_is_explained_term_by_term(run):
    result = run(KEY, "--event", "event.json")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:7] == [
        "term                       value     adds             how",
        (
            'event.data.installationId  12345678  "1.2345678e+07"  '
            "a number, as the reference writes it"
        ),
        '\'/\'                        "/"       "/"              as it is written',
        'event.data.repoOwner       "acme"    "acme"           as it is',
        "",
        'key      "1.2345678e+07/acme"',
        "outcome  key",
    ]


def test_an_event_is_a_file_standard_input_or_json_itself(run):
    text = json.dumps(EVENT)
    from_file = run(KEY, "--event", "event.json").stdout
    assert run(KEY, "--event", "-", input=text).stdout == from_file
    assert run(KEY, "--event", text).stdout == from_file


def test_json_has_everything_the_table_shows(run):
    (key,) = json.loads(run(KEY, "--event", "event.json", "--json").stdout)["keys"]
    assert (key["template"], key["key"], key["outcome"]) == (KEY, "1.2345678e+07/acme", "key")
    assert key["terms"][0] == {
        "term": "event.data.installationId",
        "type": "number",
        "value": 12345678.0,
        "rendered": "1.2345678e+07",
        "how": "a number, as the reference writes it",
        "keySoFar": "1.2345678e+07",
    }
    assert [effect["option"] for effect in key["effects"]] == [
        "debounce",
        "batchEvents",
        "idempotency",
        "rateLimit",
        "singleton",
    ]


def test_an_absent_key_is_text_to_debounce_and_nothing_to_idempotency(run):
    result = run("event.data.nothing", "--event", "event.json", "--json")
    (key,) = json.loads(result.stdout)["keys"]
    does = {effect["option"]: effect["here"] for effect in key["effects"]}
    assert (result.exit_code, key["outcome"], key["key"]) == (0, "absent", "false")
    assert does["debounce"] == "events of the same text make one run"
    assert does["idempotency"] == "does not apply: every such event makes a run"


def test_a_key_that_is_an_error_says_what_becomes_of_the_run_here_and_there(run):
    result = run("event.data.a + event.data.a", "--event", '{"data": {"a": true}}')
    assert result.exit_code == 1
    assert "outcome  error" in result.stdout
    assert "goes to the dead letters" in result.stdout
    assert "refuses the run, which is lost" in result.stdout


def test_the_keys_of_a_job_are_explained(run):
    result = run("--jobs", "jobs.yaml", "--job", "refresh", "--event", "event.json", "--json")
    keys = json.loads(result.stdout)["keys"]
    assert [(key["option"], key["key"]) for key in keys] == [
        ("debounce", "1.2345678e+07/acme"),
        ("concurrency[0]", "acme"),
        ("concurrency[1]", "all"),
    ]


def test_one_option_of_a_job_has_its_own_effects_alone(run):
    arguments = ("--jobs", "jobs.yaml", "--job", "refresh", "--option", "debounce")
    (key,) = json.loads(run(*arguments, "--event", "event.json", "--json").stdout)["keys"]
    assert [effect["option"] for effect in key["effects"]] == ["debounce"]


def test_a_long_value_is_cut_in_the_table_and_whole_in_json(run):
    event = json.dumps({"data": {"a": "x" * 100_000}})
    assert len(run("event.data.a + 'y'", "--event", event).stdout) < 102_000
    assert len(run("event.data.a + 'y'", "--event", event, "--json").stdout) > 300_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((KEY, "--event", "nowhere.json"), "`nowhere.json` can't be read"),
        ((KEY, "--event", "{"), "this is not JSON"),
        ((KEY, "--event", '{"name": "a"}'), "an event is an object with `data`"),
        ((KEY, "--event", '{"data": {"installationId": NaN}}'), "installationId is nan"),
        (
            (KEY, "--event", f'{{"data": {{"installationId": {"9" * 5_000}}}}}'),
            "event.data.installationId is a number too large for a float64",
        ),
        (("--event", "event.json"), "name a key EXPR, or a job"),
        ((KEY, "--job", "refresh", "--event", "event.json"), "name a key EXPR, or a job"),
        (
            ("--job", "refrehs", "--jobs", "jobs.yaml", "--event", "event.json"),
            "did you mean `refresh`?",
        ),
        (
            ("--job", "plain", "--jobs", "jobs.yaml", "--event", "event.json"),
            "job `plain` does not have a key",
        ),
    ],
)
def test_misuse_is_told(run, arguments, said):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in " ".join(result.stderr.split())


def test_a_template_that_is_none_is_shown_as_a_check_shows_it(run):
    result = run("event.data.a + event.name", "--event", "event.json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[JS107]" in result.stderr
