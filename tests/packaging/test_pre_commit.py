"""The hook for pre-commit runs a command that exists, on the paths it names."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from jobspec.cli import main

REPOSITORY = Path(__file__).parents[2]
GOOD = "jobs: [{id: email.send, triggers: [{event: email.send}]}]"


@pytest.fixture
def hook(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    (hook,) = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    return hook


@pytest.mark.parametrize(("spec", "code"), [(GOOD, 0), (GOOD.replace("triggers", "trigers"), 1)])
def test_the_hook_checks_the_folder_it_names(hook, spec, code):
    Path("jobs", "email.yaml").write_text(spec, encoding="utf-8")
    command, *arguments = shlex.split(hook["entry"]) + hook["args"]
    assert command == "jobspec"
    assert CliRunner().invoke(main, arguments).exit_code == code


def test_the_hook_looks_at_all_specs_and_is_not_given_the_changed_ones(hook):
    assert hook["pass_filenames"] is False
    assert (hook["language"], hook["id"]) == ("python", "jobspec-check")
