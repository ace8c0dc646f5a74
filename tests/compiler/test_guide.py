"""The guide says what is so: its commands exist, its files are valid, its settings are settings."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
import yaml

from jobspec.cli import main
from jobspec.settings import Settings

ROOT = Path(__file__).parents[2]
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    (page.name, language, text)
    for page in GUIDE
    for language, text in FENCED.findall(page.read_text(encoding="utf-8"))
]


def of(language):
    return [text for _, known, text in BLOCKS if known == language]


def commands():
    """Every jobspec command of the guide: in blocks of commands, and in steps of workflows."""
    lines = [line for text in of("") for line in text.splitlines()]
    lines += [line.partition("- run: ")[2] for text in of("yaml") for line in text.splitlines()]
    return [line.partition(" >")[0] for line in lines if line.startswith("jobspec ")]


@pytest.mark.parametrize("line", commands())
def test_a_command_of_the_guide_is_one_with_its_options(line):
    name, *arguments = shlex.split(re.sub(r"\$\{\{.*?\}\}", "main", line))[1:]
    context = click.Context(main)
    command = main.get_command(context, name)
    command.make_context(name, arguments, parent=context)


def test_files_of_the_guide_can_be_read():
    assert all(yaml.safe_load(text) for text in of("yaml"))
    assert all(json.loads(text) for text in of("json"))


def test_settings_of_the_guide_are_settings():
    (text,) = of("toml")
    names = tomllib.loads(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE))
    assert set(names["tool"]["jobspec"]) == set(Settings.__dataclass_fields__)


def test_the_hook_of_the_guide_is_offered():
    (config,) = (text for text in of("yaml") if "hooks:" in text)
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    used = yaml.safe_load(config)["repos"][0]["hooks"]
    assert {hook["id"] for hook in used} == {hook["id"] for hook in hooks}
