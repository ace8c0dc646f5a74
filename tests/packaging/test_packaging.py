"""The distribution as a user gets it: built, installed in a fresh environment, and used from there.

One file, so that one process builds it once. It needs a package registry for what jobspec needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = {
    "jobspec": REPOSITORY / "jobspec",
    "jobspec_engine": REPOSITORY / "engine" / "jobspec_engine",
    "jobspec_grammars": REPOSITORY / "grammars" / "jobspec_grammars",
}
PATIENCE = 300  # seconds until a registry that does not answer is a failure

TYPED = """
import jobspec

jobs: jobspec.CompiledJobs = jobspec.compile("jobs.yaml")
debounce = jobs["system.code-graph-refresh"].debounce
seconds: float = debounce.period.total_seconds() if debounce else 0
text: str = jobspec.KeyTemplate.parse("event.data.a").resolve({"name": "x", "data": {}}).text
registry = jobspec.Registry()


@registry.job(id="email.send", triggers=["email.send"], retries=4)
def send_email(context: object) -> str:
    return "sent"


answer: str = send_email(None)
"""
TYPED_ENGINE = """
from datetime import datetime

import jobspec
from jobspec_engine import AsyncClient, Client, Context, Worker

jobs = jobspec.compile("jobs.yaml")
with Client(jobs, "postgresql://localhost/app") as client:
    due: datetime | None = client.send("email.send", {"to": "ada"}).jobs[0].run_at


async def serve(context: Context) -> int:
    async with AsyncClient(jobs, "postgresql://localhost/app") as sender:
        await sender.send("email.send", {"attempt": context.attempt})
    await Worker(jobs, "postgresql://localhost/app").run(until_idle=True)
    return context.run_id
"""


def outside(command, folder, **environment):
    """Run a command in a folder that has nothing to do with the repository."""
    ours = ("JOBSPEC_", "PYTHON", "VIRTUAL_ENV")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def succeed(command, folder, **environment):
    """Run a command that must succeed, and return what it printed."""
    done = outside(command, folder, **environment)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Environment:
    """A fresh virtual environment, without pip: the one that runs the tests installs into it."""

    def __init__(self, folder):
        self.bin = folder / "bin"
        succeed([sys.executable, "-m", "venv", "--without-pip", folder], folder.parent)

    def install(self, requirement):
        pip = [sys.executable, "-m", "pip", "--python", self.bin / "python"]
        succeed([*pip, "install", "--quiet", requirement], self.bin.parent)

    def jobspec(self, *arguments):
        return [self.bin / "jobspec", *arguments]

    def python(self, code):
        return [self.bin / "python", "-W", "error", "-c", code]


@pytest.fixture(scope="module")
def folder():
    """A folder that root's Postgres can be in: every account may enter it."""
    with tempfile.TemporaryDirectory(prefix="jobspec-packaging-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def dist(folder):
    """The folder of the built distribution: a wheel, made from the source archive."""
    build = [sys.executable, "-m", "build", "--outdir", folder / "dist", REPOSITORY]
    succeed(build, folder)
    return folder / "dist"


@pytest.fixture(scope="module")
def wheel(dist):
    (wheel,) = dist.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def compiler(folder, wheel):
    """An environment with the compiler alone."""
    environment = Environment(folder / "compiler")
    environment.install(str(wheel))
    return environment


@pytest.fixture(scope="module")
def engine(folder, wheel):
    """An environment with the engine, too."""
    environment = Environment(folder / "engine")
    environment.install(f"{wheel}[engine]")
    return environment


@pytest.fixture
def project(tmp_path):
    """A user's folder with the two jobs in it."""
    spec = PACKAGES["jobspec_engine"] / "demo" / "jobs.yaml"
    (tmp_path / "jobs.yaml").write_text(spec.read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


# --- what is in it


def test_the_wheel_has_every_file_of_the_packages_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package, folder in PACKAGES.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped == expected
    assert {
        "jobspec/py.typed",
        "jobspec/explanations/JS301.md",
        "jobspec_engine/py.typed",
        "jobspec_engine/demo/jobs.yaml",
        "jobspec_engine/migrations/0001_init.sql",
        "jobspec_engine/sql/claim.sql",
        "jobspec_grammars/key.lark",
    } <= shipped


def test_the_wheel_says_what_it_is_and_carries_its_licence(wheel):
    with zipfile.ZipFile(wheel) as archive:
        info = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = archive.read(info).decode()
        assert info.replace("METADATA", "licenses/LICENSE") in archive.namelist()
    assert "\nName: jobspec-kit\n" in metadata
    assert "\nRequires-Python: >=3.11\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata


def test_the_source_archive_has_what_a_distributor_needs_and_no_leftovers(dist):
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "Makefile", "tests/packaging"} <= {
        *names,
        *(str(Path(name).parent) for name in names),
    }
    leftovers = (".venv/", "dist/", ".git/", ".hypothesis/", ".mypy_cache/", ".ruff_cache/")
    assert not [name for name in names if name.startswith(leftovers) or "__pycache__" in name]


# --- the compiler alone


def test_the_installed_command_checks_a_file(compiler, project):
    out = succeed(compiler.jobspec("check", "jobs.yaml"), project)
    assert out == "2 jobs in 1 file: no problems found\n"


def test_the_installed_command_shows_a_finding_and_explains_its_code(compiler, project):
    spec = project / "jobs.yaml"
    spec.write_text(spec.read_text(encoding="utf-8").replace("debounce:", "debonce:"))
    done = outside(compiler.jobspec("check", "jobs.yaml"), project)
    assert done.returncode == 1
    assert done.stdout.startswith("error[JS301]")
    assert succeed(compiler.jobspec("explain", "JS301"), project).startswith("# JS301: ")


def test_the_installed_package_compiles(compiler, project):
    code = "import jobspec; print(jobspec.compile('jobs.yaml')['email.send'].idempotency.key.text)"
    assert succeed(compiler.python(code), project) == "event.data.idempotencyKey\n"


def test_importing_the_compiler_loads_neither_engine_nor_terminal(compiler, project):
    code = "import sys, jobspec; jobspec.compile('jobs.yaml'); print(*sys.modules)"
    loaded = {name.partition(".")[0] for name in succeed(compiler.python(code), project).split()}
    assert "jobspec_grammars" in loaded
    assert not loaded & {"jobspec_engine", "psycopg", "rich", "asyncio"}


def test_without_the_engine_its_commands_say_what_to_install(compiler, project):
    done = outside(compiler.jobspec("worker", "jobs.yaml"), project)
    assert done.returncode == 2
    assert "pip install 'jobspec-kit[engine]'" in done.stderr
    assert "worker" not in succeed(compiler.jobspec("--help"), project)


# --- with the engine


@pytest.fixture
def data(folder):
    """The bundled Postgres keeps its data in a folder that goes away."""
    return {"JOBSPEC_DATA_DIR": str(folder / "data")}


def test_the_installed_demo_runs(engine, project, data):
    out = succeed(engine.jobspec("demo"), project, **data)
    assert "49  coalesced" in out
    assert "refreshed acme/web at push 50" in out


def test_the_installed_commands_take_an_event_to_its_completed_run(engine, project, data):
    event = ("email.send", '{"idempotencyKey": "welcome-42", "to": "ada@example.com"}')
    succeed(engine.jobspec("send", *event, "--jobs", "jobs.yaml"), project, **data)
    succeed(engine.jobspec("worker", "jobs.yaml", "--until-idle"), project, **data)
    (run,) = json.loads(succeed(engine.jobspec("runs", "--json"), project, **data))
    assert (run["state"], run["result"]) == ("completed", "sent to ada@example.com")
    assert succeed(engine.jobspec("drift"), project, **data) == "schema jobspec: no drift\n"


# --- its types


def mypy(environment, project):
    python = ("--python-executable", environment.bin / "python")
    return [sys.executable, "-m", "mypy", "--strict", *python, project / "consumer.py"]


def pyright(environment, project):
    (project / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    python = ("--pythonpath", environment.bin / "python")
    return [sys.executable, "-m", "pyright", *python, "--project", project]


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_consumer_is_checked_against_the_installed_types(compiler, project, checker):
    consumer = project / "consumer.py"
    consumer.write_text(TYPED)
    succeed(checker(compiler, project), project)
    consumer.write_text(TYPED.replace("text: str", "text: int"))
    assert outside(checker(compiler, project), project).returncode == 1


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_consumer_of_the_engine_is_checked_too(engine, project, checker):
    consumer = project / "consumer.py"
    consumer.write_text(TYPED_ENGINE)
    succeed(checker(engine, project), project)
    consumer.write_text(TYPED_ENGINE.replace("-> int", "-> str"))
    assert outside(checker(engine, project), project).returncode == 1
