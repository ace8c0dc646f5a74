"""`jobspec dsn` says which database the commands use."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import psycopg
import pytest

from clikit import jobspec
from databases import PythonProcess
from jobspec_engine.embedded import EmbeddedPostgres

PASSWORD = "correct-horse-battery"  # noqa: S105  it opens nothing
KEEP = "from jobspec.cli import main; main(['dsn', '--keep'], prog_name='jobspec')"


def printed(*arguments):
    return jobspec("dsn", *arguments)


@pytest.fixture
def data_dir(monkeypatch):
    """A folder for the data of the bundled Postgres, for one test alone."""
    monkeypatch.delenv("JOBSPEC_DSN", raising=False)
    with tempfile.TemporaryDirectory(prefix="jobspec-dsn-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        monkeypatch.setenv("JOBSPEC_DATA_DIR", f"{folder}/data")
        yield Path(folder, "data")


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://app:{PASSWORD}@db.example/app",
        f"host=db.example user=app password={PASSWORD} dbname=app",
        f"postgresql://app@db.example/app?password={PASSWORD}",
    ],
)
def test_a_password_is_told_only_to_who_asks_for_it(dsn):
    hidden = printed("--dsn", dsn).output
    assert PASSWORD not in hidden
    assert all(one in hidden for one in ("user=app", "dbname=app", "host=db.example", "***"))
    assert printed("--dsn", dsn, "--show-password").output == f"{dsn}\n"


def test_an_address_without_a_password_is_told_as_it_is_written(monkeypatch):
    dsn = "postgresql://app@db.example:5433/app?connect_timeout=3"
    monkeypatch.setenv("JOBSPEC_DSN", dsn)
    assert printed().output == f"{dsn}\n"


def test_a_database_of_ones_own_can_not_be_kept_running():
    result = printed("--dsn", "postgresql://db.example/app", "--keep")
    assert result.exit_code == 2
    assert "--keep is for the bundled Postgres" in result.stderr


def test_the_bundled_postgres_has_an_address_while_it_runs(data_dir):
    result = printed()
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the bundled Postgres is not running" in result.stderr
    assert "`jobspec dsn --keep` starts it" in result.stderr
    assert not data_dir.exists()
    with EmbeddedPostgres(settings={"fsync": "off"}) as server:
        assert printed().output == f"{server.dsn}\n"
    assert printed().exit_code == 1


@pytest.mark.usefixtures("data_dir")
def test_the_bundled_postgres_is_kept_running_until_ctrl_c():
    with PythonProcess(KEEP) as process:
        dsn = process.process.stdout.readline().strip()
        assert printed().output == f"{dsn}\n"
        with psycopg.connect(dsn) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
        process.process.send_signal(signal.SIGINT)
        assert process.end() == ""
    assert printed().exit_code == 1
