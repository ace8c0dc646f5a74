"""`jobspec diff`: what it shows of changes, of files and of revisions, and its exit codes."""

from __future__ import annotations

import json
import subprocess

import pytest
from click.testing import CliRunner

from jobspec.cli import main

OLD = """
jobs:
  - id: email.send
    triggers: [{event: email.send}]
    idempotency: event.data.key
  - id: gone
    triggers: [{event: email.send}]
    retries: 2
"""
NEW = OLD.replace("event.data.key", "event.data.key + '/'").replace("retries: 2", "retries: 3")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("old", OLD), ("new", NEW), ("bad", "jobs: [{id: 5}]")):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return lambda *arguments: CliRunner().invoke(main, ["diff", *arguments])


def test_changes_are_shown_by_job_with_what_they_mean(run):
    result = run("old.yaml", "new.yaml")
    assert result.exit_code == 1
    assert result.stdout == (
        "email.send\n"
        "  idempotency.key: event.data.key -> event.data.key + '/'\n"
        "    re-runs: keys of events that were sent before are not known; sent again, they run"
        " again\n"
        "\n"
        "gone\n"
        "  retries: 2 -> 3\n"
        "    runs sent from now on\n"
        "\n"
        "2 jobs change: 1 re-runs\n"
    )


def test_what_was_renamed_removed_and_added_is_said_so(run, tmp_path):
    renamed = OLD.partition("  - id: gone")[0].replace("id: email.send", "id: mail.send")
    (tmp_path / "renamed.yaml").write_text(renamed, encoding="utf-8")
    lines = run("old.yaml", "renamed.yaml").stdout.splitlines()
    assert {"mail.send (renamed from email.send)", "gone (removed)"} <= {*lines}
    (tmp_path / "more.yaml").write_text(OLD + "    debounce: {period: 1m}\n", encoding="utf-8")
    assert "  debounce: + {period: 1m}" in run("old.yaml", "more.yaml").stdout.splitlines()


def test_no_change_is_said_and_succeeds(run):
    result = run("old.yaml", "old.yaml")
    assert (result.exit_code, result.stdout) == (0, "no job changes\n")


def test_changes_that_run_nothing_again_succeed(run, tmp_path):
    text = OLD.replace("retries: 2", "retries: 3")
    (tmp_path / "later.yaml").write_text(text, encoding="utf-8")
    result = run("old.yaml", "later.yaml")
    assert result.exit_code == 0
    assert result.stdout.endswith("1 job changes: nothing in flight is touched\n")


def test_json_has_the_changes_and_the_worst_harm(run):
    found = json.loads(run("old.yaml", "new.yaml", "--json").stdout)
    assert found["harm"] == "re-runs"
    assert found["changes"][0] == {
        "job": "email.send",
        "option": "idempotency.key",
        "old": "event.data.key",
        "new": "event.data.key + '/'",
        "harm": "re-runs",
        "effect": (
            "keys of events that were sent before are not known; sent again, they run again"
        ),
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("old.yaml",), "name two specs"),
        (("old.yaml", "bad.yaml"), "error[JS302]"),
        (("old.yaml", "nowhere.yaml"), "error[JS150]"),
        (("--git", "main"), "write the revisions as"),
    ],
)
def test_misuse_and_specs_that_can_not_be_read_are_another_exit_code(run, arguments, said):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a spec at two revisions, in a folder that is the working directory."""
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")
    folder = tmp_path / "service"
    (folder / "jobs").mkdir(parents=True)
    monkeypatch.chdir(folder)
    git("init", "--quiet", "--initial-branch", "main", str(tmp_path))
    for text in (OLD, NEW):
        (folder / "jobs" / "a.yaml").write_text(text, encoding="utf-8")
        git("add", ".")
        author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        git(*author, "commit", "--quiet", "--message", "a change")
    return lambda *arguments: CliRunner().invoke(main, ["diff", *arguments])


def git(*arguments):
    subprocess.run(["git", *arguments], check=True, capture_output=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("main~1:service/jobs/a.yaml", "main:service/jobs/a.yaml"),
        ("main~1:./jobs/a.yaml", "jobs/a.yaml"),
        ("main~1:./jobs", "jobs"),
        ("main~1:service", "main:service"),
        ("--git", "main~1..main", "jobs"),
        ("--git", "main~1..", "jobs/a.yaml"),
        ("--git", "main~1..", "."),
    ],
)
def test_specs_are_compared_at_revisions(repository, arguments):
    result = repository(*arguments)
    assert (result.exit_code, result.stderr) == (1, "")
    assert "idempotency.key" in result.stdout
    assert result.stdout.endswith("2 jobs change: 1 re-runs\n")


def test_a_path_that_a_revision_does_not_have_is_misuse(repository):
    result = repository("main:nowhere.yaml", "jobs")
    assert (result.exit_code, "nowhere.yaml" in result.stderr) == (2, True)


def test_a_spec_that_is_new_has_no_jobs_before(repository, tmp_path):
    (tmp_path / "service" / "b.yaml").write_text("jobs: [{id: b, triggers: [b]}]", "utf-8")
    result = repository("--git", "main..", "b.yaml")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "b (added)")


def test_a_revision_that_git_does_not_know_is_misuse(repository):
    result = repository("--git", "nowhere..", "old.yaml")
    assert (result.exit_code, "git knows no revision `nowhere`" in result.stderr) == (2, True)


def test_a_path_that_neither_revision_has_is_misuse(repository):
    result = repository("--git", "main~1..main", "nowhere.yaml")
    assert (result.exit_code, "neither revision has nowhere.yaml" in result.stderr) == (2, True)


def test_a_faulty_spec_of_a_revision_is_shown_by_its_git_name(repository, tmp_path):
    (tmp_path / "service" / "jobs" / "a.yaml").write_text("jobs: [{id: 5}]", encoding="utf-8")
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-aqm", "a fault")
    result = repository("main~1:./jobs", "main:./jobs")
    assert result.exit_code == 2
    assert "main:./jobs/a.yaml:1:" in result.stderr


def test_a_spec_of_a_revision_that_is_not_utf_8_is_misuse(repository, tmp_path):
    (tmp_path / "service" / "jobs" / "a.yaml").write_bytes("# é".encode("latin-1"))
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-aqm", "another encoding")
    result = repository("--git", "main~1..main", "jobs")
    assert (result.exit_code, "is not UTF-8" in result.stderr) == (2, True)


def test_revisions_without_git_are_misuse(run, monkeypatch):
    monkeypatch.setenv("PATH", "")
    result = run("--git", "main..", "old.yaml")
    assert (result.exit_code, "git is not installed" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [("HEAD:specs", "specs"), ("HEAD:./a.yaml", "a.yaml"), ("--git", "main..", "a.yaml")],
)
def test_revisions_outside_of_a_repository_are_misuse(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    result = CliRunner().invoke(main, ["diff", *arguments])
    assert result.exit_code == 2
    assert "this folder is in no git repository" in result.stderr


TYPED = {
    "events": {"a": {"schema": "./schemas/a.json"}},
    "jobs": [{"id": "typed", "triggers": ["a"]}],
}


def commit(what):
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", what)


@pytest.fixture
def typed(repository, tmp_path):
    """A folder whose specs named a file with the schema of an event, and no longer do."""
    folder = tmp_path / "service" / "typed"
    (folder / "schemas").mkdir(parents=True)
    (folder / "jobs.yaml").write_text(json.dumps(TYPED), encoding="utf-8")
    (folder / "schemas" / "a.json").write_text('{"type": "object"}', encoding="utf-8")
    commit("types")
    (folder / "schemas" / "a.json").unlink()
    (folder / "jobs.yaml").write_text(json.dumps({"jobs": TYPED["jobs"]}), encoding="utf-8")
    return folder


@pytest.mark.usefixtures("typed")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--git", "HEAD..", "typed"),
        ("--git", "HEAD..", "."),
        ("--git", "HEAD..HEAD", "./typed/jobs.yaml"),
        ("HEAD:service/typed/jobs.yaml", "typed/jobs.yaml"),
        ("HEAD:./typed", "typed"),
    ],
)
def test_a_spec_of_a_revision_has_the_schemas_of_that_revision(repository, arguments):
    result = repository(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_schema_that_a_revision_does_not_have_is_missing(repository, typed):
    commit("no types")
    (typed / "jobs.yaml").write_text(json.dumps(TYPED), encoding="utf-8")
    commit("types without their file")
    (typed / "schemas").mkdir(exist_ok=True)
    (typed / "schemas" / "a.json").write_text('{"type": "object"}', encoding="utf-8")
    result = repository("--git", "HEAD..", "typed/jobs.yaml")
    assert result.exit_code == 2
    assert "error[JS150]: there is no such file" in result.stderr
    assert "--> HEAD:./typed/jobs.yaml:1:" in result.stderr
