"""Long checks: progress on a terminal, and a clean end when they are interrupted."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys

import pytest

from jobspec.cli import progress

COMMAND = "from jobspec.cli import main; main(prog_name='jobspec')"


def test_an_interrupted_check_ends_with_130_and_no_traceback(tmp_path):
    pipe = tmp_path / "jobs.yaml"
    os.mkfifo(pipe)
    check = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "check", str(pipe)], stderr=subprocess.PIPE, text=True
    )
    with pipe.open("w"):  # opens when the check has opened it to read
        check.send_signal(signal.SIGINT)
        _, said = check.communicate(timeout=60)
    assert (check.returncode, said) == (130, "\ninterrupted\n")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    """Standard error as a terminal on which the work of a test counts as long."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


def test_long_work_shows_how_far_it_is_on_a_terminal(shown):
    assert list(progress.watched(range(5))) == list(range(5))
    assert "checking" in shown.getvalue()


def test_short_work_shows_nothing(shown, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 3600.0)
    assert list(progress.watched(range(5))) == list(range(5))
    assert shown.getvalue() == ""


def test_nothing_is_shown_where_there_is_no_terminal(shown, monkeypatch):
    monkeypatch.setattr(Terminal, "isatty", lambda _: False)
    assert list(progress.watched(range(5))) == list(range(5))
    assert shown.getvalue() == ""
