"""Change the heart of the code a little, again and again, and see that a test fails each time.

    python tests/mutation/run.py keys dispatch attempt steps sql

`sql` are the changes that `sql.toml` lists; the others are Python, changed by mutmut, in a copy of
the tree that lays the packages side by side, as mutmut wants them. `survivors.toml` says of changes
that no test can find why that is so. Prints how many were found, explained, and neither, and ends
with 1 where fewer than nine of ten are found, or one is neither.

The folder `build/mutation` keeps the copies. In one of them `mutmut show <change>` shows a change.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobspec_engine.testing.databases import throw_away_server

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BUILD = ROOT / "build" / "mutation"
COPIED = (
    "jobspec",
    "engine/jobspec_engine",
    "grammars/jobspec_grammars",
    "tests",
    "examples",
    "docs",
)
GOAL = 0.9

FAILED = 1  # how pytest ends where a test failed

# How pytest ends where no test failed, or none was there, and what mutmut says of the latter.
NOT_FOUND = {0, 5, 33}

# A change may make a statement or a test wait for what never comes.
SETTINGS = {
    "HYPOTHESIS_PROFILE": "mutation",
    "JOBSPEC_TEST_PATIENCE": "10",
    "PGOPTIONS": "-c lock_timeout=30s",
}

PYPROJECT = """\
[tool.mutmut]
source_paths = ["{package}"]
only_mutate = {changed}
also_copy = ["tests", "examples", "docs", "jobspec", "jobspec_engine", "jobspec_grammars"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "mutation.quick_first"]
pytest_add_cli_args_test_selection = {tests}
track_dependencies = false
use_git_change_detection = false
timeout_multiplier = 4.0

[tool.pytest.ini_options]
pythonpath = ["tests", "."]
addopts = ["--import-mode=importlib"]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
"""


@dataclass(frozen=True)
class Part:
    """Some files of a package, and the tests that are to find each change of theirs."""

    package: str
    changed: tuple[str, ...]
    tests: tuple[str, ...]


PARTS = {
    "keys": Part(
        "jobspec",
        ("jobspec/keys/*.py",),
        (
            "tests/compiler/keys",
            "tests/compiler/test_broken_examples.py",
            "tests/reference/test_keys.py",
        ),
    ),
    "dispatch": Part(
        "jobspec_engine",
        ("jobspec_engine/dispatch.py",),
        (
            "tests/engine/test_dispatch_rows.py",
            "tests/engine/test_rejection.py",
        ),
    ),
    "attempt": Part(
        "jobspec_engine",
        ("jobspec_engine/attempt.py",),
        (
            "tests/engine/test_attempts.py",
            "tests/engine/test_retries.py",
            "tests/engine/test_timeouts.py",
            "tests/engine/test_hostile_handlers.py",
            "tests/engine/test_step_drift.py",
            "tests/engine/test_worker.py",
        ),
    ),
    "steps": Part(
        "jobspec_engine",
        ("jobspec_engine/steps.py",),
        (
            "tests/engine/test_steps.py",
            "tests/engine/test_step_answers.py",
            "tests/engine/test_step_arguments.py",
            "tests/engine/test_step_drift.py",
            "tests/engine/test_step_names.py",
            "tests/engine/test_step_slots.py",
            "tests/engine/test_step_waits.py",
        ),
    ),
}


def main(names):
    """Change what the parts name; end with 1 if that finds too little or what nobody explains."""
    reasons = tomllib.loads((HERE / "survivors.toml").read_text("utf-8"))["survivors"]
    with database() as dsn:
        environment = {**os.environ, **SETTINGS, "JOBSPEC_TEST_DSN": dsn}
        results = [judged(name, outcomes(name, environment), reasons) for name in names]
    return int(not all(results))


def outcomes(name, environment):
    """Make the changes of one part; give how the tests ended, by the name of the change."""
    if name == "sql":
        return change_sql(environment)
    return change_python(name, PARTS[name], environment)


def judged(name, ended, reasons):
    """Say what came of the changes of a part, and tell whether that is enough."""
    survivors = [change for change, code in ended.items() if code in NOT_FOUND]
    unexplained = [change for change in survivors if not explained(change, reasons)]
    share = 1 - len(survivors) / len(ended)
    sys.stdout.write(
        f"{name}: {len(ended)} changes, {share:.1%} found,"
        f" {len(survivors) - len(unexplained)} explained, {len(unexplained)} unexplained\n"
    )
    sys.stdout.writelines(f"  unexplained: {change}\n" for change in unexplained)
    return share >= GOAL and not unexplained


def explained(change, reasons):
    """Whether a reason is given for a change, or for all that are like it."""
    return any(re.fullmatch(like, change) for each in reasons for like in each["changes"])


def change_python(name, part, environment):
    """Let mutmut change the files of a part, which it does only if the tests pass without."""
    tree = lay_out(BUILD / name)
    pyproject = PYPROJECT.format(
        package=part.package, changed=list(part.changed), tests=list(part.tests)
    )
    (tree / "pyproject.toml").write_text(pyproject, "utf-8")
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "2"]
    subprocess.run(command, cwd=tree, env=environment, check=True)
    metas = sorted(tree.glob(f"mutants/{part.package}/**/*.meta"))
    results = [json.loads(meta.read_text("utf-8"))["exit_code_by_key"] for meta in metas]
    codes = {change: code for result in results for change, code in result.items()}
    if None in codes.values():
        raise SystemExit(f"{name}: not every change was tried")
    return codes


def change_sql(environment):
    """Make each change that `sql.toml` lists, once its tests have passed without."""
    tree = lay_out(BUILD / "sql")
    environment = {**environment, "PYTHONPATH": str(tree)}
    listed = tomllib.loads((HERE / "sql.toml").read_text("utf-8"))["change"]
    require_places(tree, listed)
    if ended(tree, sorted({test for each in listed for test in each["tests"]}), environment):
        raise SystemExit("the tests fail without any change")
    return {
        f"{file}: {each['why']}": change_file(tree, file, each, environment)
        for each in listed
        for file in each["files"]
    }


def require_places(tree, listed):
    """End with what no file has, or has more than once, of the texts to change."""
    unclear = [
        f"{file} has not one place for: {each['why']}"
        for each in listed
        for file in each["files"]
        if (tree / "jobspec_engine" / file).read_text("utf-8").count(each["old"]) != 1
    ]
    if unclear:
        raise SystemExit("\n".join(unclear))


def change_file(tree, file, each, environment):
    """Change one file, run the tests that are to find it, and put the file back."""
    path = tree / "jobspec_engine" / file
    before = path.read_text("utf-8")
    path.write_text(before.replace(each["old"], each["new"]), "utf-8")
    try:
        code = ended(tree, each["tests"], environment)
    finally:
        path.write_text(before, "utf-8")
    if code not in {FAILED, *NOT_FOUND}:
        raise SystemExit(f"pytest ended with {code} at {file}: {each['why']}")
    sys.stdout.write(f"{code} {file}: {each['why']}\n")
    sys.stdout.flush()
    return code


def ended(tree, tests, environment):
    """How pytest ends with these tests; one that waits for what never comes has failed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    files = [f"tests/{name}" for name in tests]
    try:
        return subprocess.run(
            [*command, *files],
            cwd=tree,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=False,
            timeout=600 * len(files),
        ).returncode
    except subprocess.TimeoutExpired:
        return FAILED


def lay_out(tree):
    """Copy the packages side by side, as a wheel installs them, with the tests."""
    shutil.rmtree(tree, ignore_errors=True)
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tree / Path(name).name, ignore=ignored)
    (tree / "pyproject.toml").write_text(
        PYPROJECT.format(package="", changed=[], tests=[]), "utf-8"
    )
    return tree


@contextmanager
def database():
    """Give the DSN of a Postgres that all of the changes share."""
    if dsn := os.environ.get("JOBSPEC_TEST_DSN"):
        yield dsn
        return
    with throw_away_server(os.environ.get("JOBSPEC_TEST_PG_BIN")) as dsn:
        yield dsn


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:] or [*PARTS, "sql"]))
