"""The command as a person runs it: what it prints, and its exit codes."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from jobspec import cli
from jobspec.cli import check as checking
from jobspec.cli import group

GOOD = """
jobs:
  - id: email.send
    triggers: [{event: email.send}]
    idempotency: event.data.idempotencyKey
  - id: system.code-graph-refresh
    triggers: [{event: github/push}]
    debounce:
      key: event.data.installationId + '/' + event.data.repoOwner
      period: 2m
      timeout: 15m
"""
BAD = GOOD.replace("timeout: 15m", "timeuot: 15m")
WARNED = GOOD.replace("    triggers: [{event: email.send}]", "    triggers: []")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("good", GOOD), ("bad", BAD), ("warned", WARNED)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")

    def run(*arguments, **more):
        return CliRunner().invoke(cli.main, list(arguments), **more)

    return run


def test_a_clean_check_says_what_it_looked_at(run):
    result = run("check", "good.yaml")
    assert (result.exit_code, result.stdout) == (0, "2 jobs in 1 file: no problems found\n")


def test_a_finding_makes_the_exit_code_one(run):
    result = run("check", "good.yaml", "bad.yaml", "warned.yaml")
    assert result.exit_code == 1
    assert "bad.yaml:11:7" in result.stdout


def test_the_summary_counts_errors_warnings_and_files(run):
    result = run("check", "warned.yaml", "bad.yaml")
    assert result.stdout.splitlines()[-1] == "3 errors, 1 warning in 2 of 2 files"


def test_warnings_fail_only_a_strict_check(run):
    assert run("check", "warned.yaml").exit_code == 0
    assert run("check", "--strict", "warned.yaml").exit_code == 1


def test_a_missing_file_is_a_finding_and_no_files_are_misuse(run):
    assert run("check", "nowhere.yaml").exit_code == 1
    assert run("check").exit_code == 2


def test_a_format_that_does_not_exist_is_misuse(run):
    assert run("check", "--format", "html", "good.yaml").exit_code == 2


def test_formats_for_programs_have_the_output_to_themselves(run):
    result = run("check", "--format", "json", "good.yaml")
    assert json.loads(result.stdout) == {"files": ["good.yaml"], "findings": []}
    assert result.stderr == "2 jobs in 1 file: no problems found\n"


def test_standard_input_is_checked(run):
    assert run("check", "-", input=GOOD).exit_code == 0
    assert "<stdin>:11:7" in run("check", "-", input=BAD).stdout


def test_there_are_no_colours_but_on_a_terminal(run, monkeypatch):
    assert "\x1b" not in run("check", "bad.yaml").stdout
    monkeypatch.setattr(checking, "_is_terminal", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1;31merror" in run("check", "bad.yaml", color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("check", "bad.yaml", color=True).stdout


def test_compiled_jobs_are_printed_as_json(run):
    result = run("compile", "good.yaml")
    jobs = json.loads(result.stdout)["jobs"]
    assert result.exit_code == 0
    assert [job["id"] for job in jobs] == ["email.send", "system.code-graph-refresh"]
    assert jobs[1]["debounce"] == {
        "period": "2m",
        "key": "event.data.installationId + '/' + event.data.repoOwner",
        "timeout": "15m",
    }


def test_what_can_not_be_compiled_prints_nothing_but_errors(run):
    result = run("compile", "bad.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[JS301]" in result.stderr


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_a_code_that_is_always_shown_is_neither_selected_nor_ignored(run, option):
    result = run("check", "good.yaml", option, "JS3")
    assert result.exit_code == 2
    assert "`JS3` is always shown: only `JS2` and `JS4` are selected or ignored" in result.stderr


def test_a_code_is_explained_by_number_or_name(run):
    page = run("explain", "JS407").stdout
    assert page.startswith("# JS407: cancels-every-run\n")
    assert run("explain", "js407").stdout == run("explain", "cancels-every-run").stdout == page


def test_a_code_that_does_not_exist_is_misuse(run):
    result = run("explain", "unknown-feild")
    assert result.exit_code == 2
    assert "did you mean `unknown-field`?" in result.stderr


def test_the_version_is_that_of_the_distribution(run):
    assert run("--version").stdout.startswith("jobspec ")


def test_a_command_that_does_not_exist_is_misuse(run, monkeypatch):
    monkeypatch.setattr(group, "_installed", dict)
    result = run("chekc")
    assert result.exit_code == 2
    assert "did you mean `check`?" in result.stderr


def test_an_engine_command_without_the_engine_says_what_to_install(run, monkeypatch):
    monkeypatch.setattr(group, "_installed", dict)
    result = run("worker")
    assert result.exit_code == 2
    assert "pip install 'jobspec-kit[engine]'" in result.stderr


def test_commands_of_other_packages_are_ours_too(run, monkeypatch):
    monkeypatch.setattr(group, "_installed", lambda: {"hello": click.Command("hello")})
    assert run("hello").exit_code == 0
    assert "hello" in run("--help").stdout


def test_jobs_are_printed_as_a_registration(run):
    result = run("compile", "good.yaml", "--target", "inngest", "--app", "shop")
    functions = json.loads(result.stdout)["functions"]
    assert [function["id"] for function in functions] == [
        "shop-email.send",
        "shop-system.code-graph-refresh",
    ]


@pytest.mark.parametrize(
    ("target", "field", "name"),
    [("inngest", "on_missing: reject", "Inngest"), ("engine", "concurrency: 5", "the engine")],
)
def test_an_option_that_a_target_has_not_is_an_error_at_its_place(run, target, field, name):
    text = GOOD.replace("    idempotency:", f"    {field}\n    idempotency:")
    for command in ("compile", "check"):
        result = run(command, "-", "--target", target, input=text)
        assert result.exit_code == 1
        assert f"error[JS411]: {name} can't honour `{field.split(':')[0]}`" in result.output
        assert "--> <stdin>:5:5" in result.output
    assert run("check", "-", input=text).stdout == "2 jobs in 1 file: no problems found\n"


@pytest.mark.parametrize(
    ("target", "field"), [("inngest", "on_missing: reject"), ("engine", "concurrency: 5")]
)
def test_an_option_that_is_silenced_is_refused_by_the_target_all_the_same(run, target, field):
    silenced = f"    {field} # jobspec: ignore[JS411] we know\n    idempotency:"
    text = GOOD.replace("    idempotency:", silenced)
    result = run("compile", "-", "--target", target, input=text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")


def test_the_schema_of_spec_files_is_printed_without_any(run):
    result = run("compile", "--target", "schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["title"] == "Background jobs"


def test_other_targets_need_specs(run):
    result = run("compile")
    assert (result.exit_code, "there is nothing to read" in result.stderr) == (2, True)


def test_a_check_and_a_compilation_import_what_is_named_where_they_are_told_to(run):
    text = GOOD.replace("    idempotency:", "    handler: no_such_app.jobs:send\n    idempotency:")
    for command in ("check", "compile"):
        assert run(command, "-", input=text).exit_code == 0
        result = run(command, "-", "--import", input=text)
        assert result.exit_code == 1
        assert "error[JS317]" in result.output
