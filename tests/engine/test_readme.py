"""What the documents say is so: each command and each piece of code in the README is run."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from jobspec import report
from jobspec.cli import main

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted(
    path
    for path in (*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"))
    if "node_modules" not in path.parts
)
COMMAND = "from jobspec.cli import main; main(prog_name='jobspec')"
ADDRESS = "postgresql://localhost/app"  # the README's database
HANDLERS = """
async def send_email(context):
    return "sent"

async def refresh(context):
    return "refreshed"
"""


class Block(NamedTuple):
    """A fenced block."""

    language: str
    text: str


FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [Block(*found) for found in FENCED.findall(README)]
SESSIONS = [one for one in BLOCKS if one.text.startswith("$ ")]
COMMANDS = [
    line.partition("  #")[0].strip()
    for block in BLOCKS
    if not block.language and block not in SESSIONS
    for line in block.text.splitlines()
]
PYTHON = [block.text for block in BLOCKS if block.language == "python"]
SPEC, WORKFLOW = (block.text for block in BLOCKS if block.language == "yaml")


def in_words(names):
    return ", ".join(f"`{name}`" for name in names)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The folder of somebody who did what the README says."""
    (tmp_path / "jobs").mkdir()
    for spec in (tmp_path / "jobs.yaml", tmp_path / "jobs" / "jobs.yaml"):
        spec.write_text(SPEC, encoding="utf-8")
    (tmp_path / "myapp").mkdir()
    (tmp_path / "myapp" / "jobs.py").write_text(HANDLERS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def jobspec(command, folder, dsn=None):
    """Run a command in a process of its own, on the database of the test."""
    words = [dsn if word == ADDRESS else word for word in shlex.split(command)]
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *words[1:]],
        cwd=folder,
        env={**os.environ, "JOBSPEC_DSN": dsn or ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_block_is_of_a_kind_that_is_run():
    kinds = {block.language for block in BLOCKS}
    assert kinds == {"", "yaml", "python"}
    assert all(line.split()[0] in ("make", "pip", "jobspec") for line in COMMANDS)
    assert len(SESSIONS) == 1
    assert len(PYTHON) == 5


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith("make")])
def test_each_target_that_is_named_exists(command):
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE)


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith("pip")])
def test_each_distribution_that_is_installed_is_ours(command):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, _, extra = shlex.split(command)[2].partition("[")
    assert name == project["name"]
    assert not extra or extra.rstrip("]") in project["optional-dependencies"]


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith("jobspec")])
def test_each_command_runs(project, dsn, command):
    once = command + " --until-idle" if " worker " in command else command
    done = jobspec(once, project, dsn)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("session", SESSIONS)
def test_a_command_prints_what_is_shown(project, session):
    command, _, shown = session.text.removeprefix("$ ").partition("\n")
    misspelt = SPEC.replace("debounce:", "debonce:")
    (project / "jobs.yaml").write_text(misspelt, encoding="utf-8")
    done = jobspec(command, project)
    assert (done.returncode, done.stdout) == (1, shown)


@pytest.fixture
def data_folder(monkeypatch):
    """A folder for the data of the bundled Postgres, for this test alone."""
    with tempfile.TemporaryDirectory(prefix="jobspec-readme-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        monkeypatch.setenv("JOBSPEC_DATA_DIR", f"{folder}/data")
        yield


@pytest.mark.usefixtures("data_folder")
def test_the_code_runs_and_gives_what_its_comments_say(project, dsn):
    names = {"__name__": "readme"}
    compared = 0
    for text in PYTHON:
        code = text.replace(ADDRESS, dsn)
        for statement in ast.parse(code).body:
            compared += run_statement(statement, code.splitlines(), names)
    assert compared == 3


def run_statement(statement, lines, names):
    """Run a statement, and hold an expression at its end to its comment; tell if there was one."""
    inner = statement.body[-1] if isinstance(statement, ast.With) else statement
    exec(compile(ast.Module([statement], []), "README.md", "exec"), names)  # noqa: S102  it is ours
    if not isinstance(inner, ast.Expr):
        return False
    value = eval(compile(ast.Expression(inner.value), "README.md", "eval"), names)  # noqa: S307
    _, _, comment = lines[inner.end_lineno - 1].partition("  # ")
    said = comment.strip() or lines[inner.end_lineno].removeprefix("# ")
    assert said.startswith((repr(value), str(value)))
    return True


def test_the_workflow_checks_the_specs_of_a_folder(project):
    steps = yaml.safe_load(WORKFLOW)["jobs"]["jobspec"]["steps"]
    install, check = (step["run"] for step in steps if "run" in step)
    assert install in COMMANDS
    assert jobspec(check, project).returncode == 0
    misspelt = SPEC.replace("debounce:", "debonce:")
    (project / "jobs" / "jobs.yaml").write_text(misspelt, encoding="utf-8")
    done = jobspec(check, project)
    assert done.returncode == 1
    assert done.stdout.startswith("::error file=jobs/jobs.yaml,")


def test_the_formats_are_those_there_are():
    assert f"Formats: {in_words(report.FORMATS)}." in README


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_links_to_exists(document):
    text = document.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", text)
    paths = re.findall(r"`((?:\.ci|docs|engine|examples|grammars|jobspec|tests)/[\w./-]*)`", text)
    missing = [link for link in links if not (document.parent / link).exists()]
    missing += [path for path in paths if not (REPOSITORY / path).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_commands_that_a_document_names_exist(document):
    named = re.findall(r"`jobspec ([a-z]+)", document.read_text(encoding="utf-8"))
    assert set(named) <= set(main.list_commands(None))
