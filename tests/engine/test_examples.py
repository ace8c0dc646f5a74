"""Each example runs, and prints what it says it does."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import jobspec

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"
TWO_JOBS = EXAMPLES / "two_jobs"
PROGRAMS = sorted(path.parent.name for path in EXAMPLES.glob("*/__main__.py"))
COMMAND = "from jobspec.cli import main; main(prog_name='jobspec')"


def python(*arguments, folder=REPOSITORY, **environment):
    """Run Python in a folder, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed_by(name):
    return (EXAMPLES / name / "output.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_prints_its_output_and_may_be_started_again(dsn, name):
    for _ in range(2):
        assert python("-m", f"examples.{name}", JOBSPEC_DSN=dsn) == printed_by(name)


def test_an_example_runs_on_the_bundled_postgres():
    with tempfile.TemporaryDirectory(prefix="jobspec-example-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        out = python("-m", "examples.decorator", JOBSPEC_DSN="", JOBSPEC_DATA_DIR=folder)
    assert out == printed_by("decorator")


def sessions():
    """Give each command of the two jobs' README with the lines it is shown to print."""
    text = (TWO_JOBS / "README.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for session in re.split(r"^\$ ", blocks, flags=re.MULTILINE)[1:]:
        command, *lines = session.splitlines()
        yield shlex.split(command)[1:], lines


def is_shown(line, pattern):
    """Tell whether a line is the one shown, where `…` stands for anything."""
    expression = ".+".join(map(re.escape, pattern.split("…")))
    return re.fullmatch(expression, line.rstrip()) is not None


def test_the_commands_of_the_two_jobs_print_what_their_readme_shows(dsn, tmp_path):
    folder = shutil.copytree(TWO_JOBS, tmp_path / "two_jobs")
    ran = 0
    for arguments, shown in sessions():
        lines = python("-c", COMMAND, *arguments, folder=folder, JOBSPEC_DSN=dsn).splitlines()
        assert len(lines) == len(shown), arguments
        assert [pair for pair in zip(lines, shown, strict=True) if not is_shown(*pair)] == []
        ran += 1
    assert ran == 7


def test_the_two_jobs_are_those_of_the_demo():
    def compiled(path):
        jobs = jobspec.compile(path).values()
        return [dataclasses.replace(job, handler=None) for job in jobs]

    demo = REPOSITORY / "engine" / "jobspec_engine" / "demo" / "jobs.yaml"
    assert compiled(TWO_JOBS / "jobs.yaml") == compiled(demo)


def test_the_index_names_each_example():
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()} - {"__pycache__"}
    assert set(re.findall(r"^\| \[(\w+)\]", index, re.MULTILINE)) | {"broken"} == folders
