"""The guide's pages about steps: their code runs, and does what they say."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

import jobspec
from jobspec_engine.step_results import MAX_RESULT_BYTES

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
RULE = "A step at every side effect that must not happen twice, and at every decision that later"


def code_of(page, **names):
    """Run the Python of a page with these names at hand; return all names."""
    fenced = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    (text,) = fenced.findall((GUIDE / page).read_text(encoding="utf-8"))
    scope = {"__name__": "guide", **names}
    exec(compile(text, page, "exec"), scope)  # noqa: S102  it is ours
    return scope


class Provider:
    def __init__(self):
        self.done = []

    async def boot(self, key):
        self.done.append(f"boot {key}")
        return {"id": f"container of {key}", "booted_at": time.time()}

    async def read(self, container_id):
        assert container_id == "container of key"
        self.done.append("read")
        if self.done.count("read") == 1:
            raise OSError
        return "done"

    def tear_down(self, container_id):
        self.done.append(f"tear down {container_id}")


def test_the_supervisor_of_the_guide_does_what_must_be_done_once_over_a_death(rehearse):
    provider = Provider()
    scope = code_of("long-running-jobs.md", provider=provider)

    async def no_pause(seconds):
        assert seconds == 5

    scope["asyncio"] = SimpleNamespace(sleep=no_pause)
    rehearsal = rehearse(jobspec.compile(scope["registry"]))
    rehearsal.kill_at_step("tear down")
    rehearsal.send("container.requested", {}, id="key")
    rehearsal.run_to_the_end()
    (run,) = rehearsal.runs()
    assert run.result == "done"
    assert provider.done == ["boot key", "read", "read", "tear down container of key"]


def test_the_order_of_the_guide_goes_through_each_kind_of_step(rehearse):
    told = []

    def book(label):
        raise ConnectionError(label)

    scope = code_of(
        "steps.md",
        print_label=lambda order: f"label of {order}",
        book_courier=book,
        tell_office=told.append,
        backoff=jobspec.Backoff("fixed", delay=timedelta(minutes=1)),
    )
    registry = scope["registry"]

    @registry.job(id="order.invoice", triggers=["never"])
    async def invoice(context):
        return f"invoice of {context.event.data['order']}"

    @registry.job(id="last", triggers=["order.done"])
    async def last(context):
        return context.event.data

    rehearsal = rehearse(jobspec.compile(registry))
    rehearsal.send("order.paid", {"order": 7})
    rehearsal.run_until_idle()
    for _ in range(3):
        rehearsal.clock.advance(60)
        rehearsal.run_until_idle()
    rehearsal.clock.advance(timedelta(hours=4))
    rehearsal.run_until_idle()
    rehearsal.send("parcel.delivered", {"label": "label of 7"})
    rehearsal.run_to_the_end()
    results = {run.job_id: run.result for run in rehearsal.runs()}
    assert results["order.ship"] == "delivered"
    assert results["last"]["invoice"] == "invoice of 7"
    assert told == ["step `book courier` failed: ConnectionError: label of 7"]


def test_the_versions_of_the_guide_are_kept(rehearse):
    done = []
    scope = code_of(
        "living-with-code-changes.md",
        boot=lambda: done.append("boot"),
        check_quota=lambda: done.append("check quota"),
        tear_down=lambda _: done.append("tear down"),
    )
    rehearsal = rehearse(jobspec.compile(scope["registry"]))
    rehearsal.kill_at_step("check quota", after=True)
    rehearsal.send("container.requested", {})
    rehearsal.run_to_the_end()
    assert done == ["boot", "check quota", "check quota", "tear down"]


@pytest.mark.parametrize(
    "path", ["docs/guide/long-running-jobs.md", "docs/decisions/0009-what-survives-a-restart.md"]
)
def test_the_rule_is_the_same_wherever_it_stands(path):
    assert RULE in " ".join((ROOT / path).read_text(encoding="utf-8").replace(">", "").split())


def test_the_rule_stands_at_the_head_of_the_steps_with_the_place_of_its_reasons():
    head = (ROOT / "engine" / "jobspec_engine" / "steps.py").read_text(encoding="utf-8")
    paragraph = " ".join(head.split('"""')[1].split())
    assert "step at every side effect that must not happen twice" in paragraph
    (record,) = re.findall(r"docs/decisions/[\w-]+\.md", paragraph)
    assert (ROOT / record).exists()


def test_the_record_cites_functions_and_tests_that_there_are():
    record = (ROOT / "docs/decisions/0009-what-survives-a-restart.md").read_text(encoding="utf-8")
    code = {
        path.name: path.read_text(encoding="utf-8")
        for folder in ("engine/jobspec_engine", "examples/supervisor", "tests/engine")
        for path in (ROOT / folder).glob("*.py")
    }
    for name in re.findall(r"`(test_\w+)`", record):
        assert f"def {name}(" in code["test_supervisor.py"]
    cited = re.findall(r"`(?:[\w/]+/)?(\w+\.py)`\s+\(((?:`\w+`(?:, )?)+)\)", record)
    assert {file for file, _ in cited} == {"worker.py", "steps.py", "supervise.py"}
    for file, names in cited:
        assert all(f"def {name}(" in code[file] for name in re.findall(r"\w+", names))


def test_the_size_of_a_result_is_the_one_that_is_told():
    assert MAX_RESULT_BYTES == 1024 * 1024
