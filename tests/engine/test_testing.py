"""What users test their jobs with."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from enginekit import job

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "testing.md"


def test_the_example_of_the_guide_passes_with_nothing_but_the_plugin(tmp_path, server_dsn):
    conftest, example = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_example.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:asyncio", "."],
        cwd=tmp_path,
        env={**os.environ, "JOBSPEC_TEST_DSN": server_dsn},
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_a_rehearsal_goes_on_until_no_run_waits(rehearse):
    async def handler(context):
        if context.attempt < 4:
            raise OSError("not yet")

    rehearsal = rehearse(job(handler=handler))
    rehearsal.send("event", {})
    start = rehearsal.clock.now()
    rehearsal.run_to_the_end()
    (run,) = rehearsal.runs("job")
    assert (run.state, run.attempt) == ("completed", 4)
    assert rehearsal.clock.now() - start > timedelta(seconds=45)
    assert rehearsal.runs("other") == []


def test_a_run_that_waits_longer_than_asked_for_is_told(rehearse):
    rehearsal = rehearse(job(debounce={"period": "1h"}))
    rehearsal.send("event", {})
    with pytest.raises(TimeoutError, match="still waits"):
        rehearsal.run_to_the_end(within=timedelta(minutes=59))
    rehearsal.run_to_the_end(within=timedelta(minutes=60))
    assert [run.state for run in rehearsal.runs()] == ["completed"]


def test_sleeps_of_a_handler_take_no_time(rehearse):
    async def handler(context):
        await context.step.sleep("a second", timedelta(seconds=1))
        await context.step.sleep("a day", timedelta(days=1))

    rehearsal = rehearse(job(handler=handler))
    rehearsal.send("event", {})
    start = rehearsal.clock.now()
    rehearsal.run_to_the_end()
    assert [run.state for run in rehearsal.runs()] == ["completed"]
    assert rehearsal.clock.now() - start >= timedelta(days=1, seconds=1)


async def test_handlers_may_share_the_event_loop_of_an_async_test(rehearse):
    entered = asyncio.Queue()

    async def handler(context):
        entered.put_nowait(context.event.data)

    rehearsal = rehearse(job(handler=handler))
    rehearsal.send("event", {"n": 1})
    await rehearsal.run_until_idle_async()
    assert entered.get_nowait() == {"n": 1}


async def test_an_async_test_may_run_handlers_in_a_loop_of_their_own(rehearse):
    rehearsal = rehearse(job())
    rehearsal.send("event", {})
    rehearsal.run_until_idle()
    assert [run.state for run in rehearsal.runs()] == ["completed"]
