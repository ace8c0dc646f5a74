"""The command where its surroundings are odd: streams closed, no reader, no directory."""

from __future__ import annotations

import subprocess
import sys

import pytest

BAD = "jobs:\n" + "".join(f"- id: a{n}\n  triggers: [a]\n  retires: 1\n" for n in range(2_000))


def shell(line, folder):
    """The exit code of a line of the shell in which `$JOBSPEC` is the command, and its streams."""
    command = f"'{sys.executable}' -c 'from jobspec.cli import main; main()'"
    line = line.replace("$JOBSPEC", command)
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, check=False)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bad.yaml").write_text(BAD, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_check_with_closed_streams_still_has_its_exit_code(folder, closed):
    (folder / "good.yaml").write_text("jobs: [{id: a, triggers: [a]}]", encoding="utf-8")
    done = shell(f"$JOBSPEC check good.yaml {closed}; echo $? >code", folder)
    assert (folder / "code").read_text() == "0\n", done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["check -", "key event.data.a --event -"])
def test_closed_standard_input_is_told_and_is_no_crash(folder, command):
    done = shell(f"$JOBSPEC {command} <&-", folder)
    assert b"standard input is closed" in done.stdout + done.stderr
    assert b"Traceback" not in done.stderr


def test_a_reader_that_goes_away_ends_a_check_quietly(folder):
    done = shell("$JOBSPEC check bad.yaml | head -1", folder)
    assert (done.stdout.count(b"\n"), done.stderr) == (1, b"")


def test_a_working_directory_that_is_gone_keeps_no_file_from_being_checked(folder):
    (folder / "gone").mkdir()
    done = shell('cd gone; rmdir ../gone; $JOBSPEC check gone.yaml "$OLDPWD/bad.yaml"', folder)
    assert b"there is no such file" in done.stdout, done.stderr
    assert done.stdout.endswith(b"2,001 errors in 2 of 2 files\n")
