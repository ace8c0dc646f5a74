"""Long checks: progress on a terminal, and a clean end when they are interrupted."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr

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


def shown(monkeypatch, *, patience=0.0, terminal=True):
    """What work shows on standard error. It counts as long once `patience` seconds have passed."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE", patience)
    stream = Terminal() if terminal else io.StringIO()
    with redirect_stderr(stream):
        assert list(progress.watched(range(5))) == list(range(5))
    return stream.getvalue()


def test_long_work_shows_how_far_it_is_on_a_terminal(monkeypatch):
    assert "checking" in shown(monkeypatch)


def test_short_work_shows_nothing(monkeypatch):
    assert shown(monkeypatch, patience=3600.0) == ""


def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch):
    assert shown(monkeypatch, terminal=False) == ""
