"""The page about runs that fail says what is so."""

from __future__ import annotations

import re
from pathlib import Path

import jobspec
from enginekit import dead_letters, job, run_until_idle, runs
from jobspec_engine import Client, Event, NonRetriable
from jobspec_engine.replay import REASONS
from jobspec_engine.target import require_supported

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "failing.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
((_, SPEC),) = (block for block in BLOCKS if block[0] == "yaml")
((_, SQL),) = (block for block in BLOCKS if block[0] == "sql")
((_, CODE),) = (block for block in BLOCKS if block[0] == "python")


def test_the_spec_of_the_page_is_one_that_the_engine_takes():
    jobs = jobspec.compile(SPEC)
    require_supported(jobs)
    assert [one.backoff.policy for one in jobs["invoice.pay"].retry.on] == ["never", "fixed"]


def test_the_page_tells_every_reason():
    assert set(REASONS) <= set(re.findall(r"`([a-z-]+)`", PAGE))


async def test_the_code_of_the_page_runs(dsn, connection):
    async def handler(context):
        raise NonRetriable("no")

    compiled = job("invoice.pay", handler=handler)
    with Client(compiled, dsn) as client:
        ids = [client.send("event", {"n": n}).jobs[0].run_id for n in range(3)]
        await run_until_idle(compiled, dsn)
        assert len(dead_letters(connection)) == 3
        exec(CODE, {"client": client, "run_id": ids[0], "other_id": ids[1]})  # noqa: S102
    assert [run.replayed_as for run in runs(connection)] == [4, 5, 6, None, None, None]
    sent = connection.execute("select data::text from jobspec.job_event order by received_at, id")
    texts = {text.replace(" ", "") for (text,) in sent}
    assert {'{"n":0}', '{"amount":5}', '{"n":2,"retried":true}'} <= texts


def test_the_sql_of_the_page_cancels_what_waits_of_the_job(dsn, connection):
    for one in (job("invoice.pay"), job("other")):
        with Client(one, dsn) as client:
            client.send_many([Event("event", {})] * 2)
    assert connection.execute(SQL).fetchall() == [("cancelled", 2)]
    assert [(run.job_id, run.state) for run in runs(connection)] == [
        *[("invoice.pay", "cancelled")] * 2,
        *[("other", "pending")] * 2,
    ]
