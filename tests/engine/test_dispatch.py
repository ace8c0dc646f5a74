"""An event and the compiled jobs: which jobs it starts, by which rows, and what is refused."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

import jobspec
from enginekit import SQL, claim, count, job, jobs, runs
from jobspec_engine import AsyncClient, Client, Event, Worker
from jobspec_engine.calls import fetch
from jobspec_engine.errors import UnsupportedOptionError
from jobspec_engine.rows import Failure

THE_TWO_JOBS = """
jobs:
  - id: email.send
    triggers: [{event: email.send}]
    handler: myapp.jobs:send_email
    idempotency: event.data.idempotencyKey
    retries: 4
  - id: system.code-graph-refresh
    triggers: [{event: github/push}]
    handler: myapp.jobs:refresh
    debounce:
      key: event.data.installationId + '/' + event.data.repoOwner + '/' + event.data.repoName
      period: 2m
      timeout: 15m
"""


def test_an_event_starts_every_job_that_it_triggers_in_the_order_they_were_written(dsn, connection):
    compiled = jobs(zeta={}, alpha={}, other={"event": "other"})
    with Client(compiled, dsn) as client:
        sent = client.send("event", {}, id="e")
    assert sent.event_id == "e"
    assert [one.job_id for one in sent.jobs] == ["zeta", "alpha"]
    assert [run.job_id for run in runs(connection)] == ["zeta", "alpha"]
    assert [run.event_id for run in runs(connection)] == ["e", "e"]


def test_the_two_jobs_of_the_examples_send_as_their_file_says(dsn, connection, clock):
    push = {"installationId": 12345678, "repoOwner": "acme", "repoName": "web"}
    with Client(jobspec.compile(THE_TWO_JOBS), dsn) as client:
        for _ in range(2):
            client.send("email.send", {"idempotencyKey": "welcome-42"})
            client.send("github/push", push)
            clock.advance(30)
    email, refresh = runs(connection)
    assert (email.job_id, email.max_attempts, email.run_at) == ("email.send", 5, clock.START)
    assert (refresh.debounce_key, refresh.events) == ("1.2345678e+07/acme/web", 2)
    assert refresh.run_at == clock.START + timedelta(seconds=30, minutes=2)
    assert refresh.run_by == clock.START + timedelta(minutes=15)


def test_a_run_without_options_is_due_at_once(dsn, clock, connection):
    with Client(job(), dsn) as client:
        (sent,) = client.send("event", {}).jobs
    (run,) = runs(connection)
    assert sent.run_at == run.run_at == run.enqueued_at == clock.START
    assert (run.events, run.attempt, run.state, run.run_by) == (1, 0, "pending", None)


def test_an_event_without_an_id_gets_its_own_and_ids_grow_with_the_time(dsn, connection):
    with Client(job(), dsn) as client:
        ids = [client.send("event", {}).event_id for _ in range(50)]
    assert len(set(ids)) == 50
    assert [one[14] for one in ids] == ["7"] * 50
    assert sorted(one[:13] for one in ids) == [one[:13] for one in ids]


def test_a_batch_answers_in_its_order(dsn):
    names = ["event", "unheard", "event", "other"]
    with Client(jobs(job={}, other={"event": "other"}), dsn) as client:
        sent = client.send_many([Event(name, {}, str(n)) for n, name in enumerate(names)])
    assert [one.event_id for one in sent] == ["0", "1", "2", "3"]
    assert [[one.job_id for one in one.jobs] for one in sent] == [["job"], [], ["job"], ["other"]]


def test_a_large_batch_is_sent_as_one(dsn, connection):
    with Client(job(idempotency="event.data.key"), dsn) as client:
        sent = client.send_many([Event("event", {"key": n % 700}) for n in range(3_000)])
    assert [one.jobs[0].outcome for one in sent].count("enqueued") == 700
    assert (count(connection, "job_event"), count(connection, "job_queue")) == (3_000, 700)


def test_a_duplicate_of_an_event_that_became_part_of_another_s_run_names_that_run(dsn):
    with Client(job(debounce={"period": "1m"}), dsn) as client:
        client.send("event", {}, id="a")
        (joined,) = client.send("event", {}, id="b").jobs
        (first_again,) = client.send("event", {}, id="a").jobs
        (last_again,) = client.send("event", {}, id="b").jobs
    assert (first_again.outcome, first_again.run_id) == ("duplicate", joined.run_id)
    assert (last_again.outcome, last_again.run_id) == ("duplicate", joined.run_id)


@pytest.mark.parametrize(
    "broken", ["event.data.a[0]", "event.data.a +", "size(event.data.a)", "event.name", "'x' 'y'"]
)
@pytest.mark.parametrize("option", ["idempotency", "debounce"])
def test_registering_a_key_outside_the_subset_raises_and_nothing_is_written(
    dsn, connection, option, broken
):
    options = {"idempotency": broken, "debounce": {"key": broken, "period": "1m"}}
    with pytest.raises(jobspec.CompileError), Client(job(**{option: options[option]}), dsn):
        pytest.fail("the job was compiled")
    assert count(connection, "job_event") == count(connection, "job_queue") == 0


@pytest.mark.parametrize("front_door", [Client, AsyncClient, Worker])
def test_an_option_that_the_engine_can_not_honour_is_refused_by_name(dsn, front_door):
    compiled = jobs(
        throttled={"throttle": {"limit": 1, "period": "1m"}},
        single={"singleton": {"mode": "skip"}},
        plain={},
    )
    with pytest.raises(UnsupportedOptionError) as raised:
        front_door(compiled, dsn)
    assert "`throttle` of job `throttled`" in str(raised.value)
    assert "`singleton` of job `single`" in str(raised.value)
    assert "plain" not in str(raised.value)
    assert str(raised.value).endswith("remove them, or run these jobs on Inngest")


def test_an_event_with_a_wildcard_is_refused_by_name(dsn):
    with pytest.raises(UnsupportedOptionError) as raised:
        Client(jobs(all={"event": "app/*"}, one={"event": "app/one"}), dsn)
    assert "the wildcard `app/*` in `triggers[0].event` of job `all`" in str(raised.value)
    assert "app/one" not in str(raised.value)


async def test_concurrent_async_sends_answer_each_its_own(dsn, connection):
    async with AsyncClient(job(idempotency="event.data.key"), dsn) as client:
        sends = [client.send("event", {"key": n // 2}, id=f"e{n}") for n in range(400)]
        sent = await asyncio.gather(*sends)
    assert [one.event_id for one in sent] == [f"e{n}" for n in range(400)]
    by_run = {run.id: run.event_id for run in runs(connection)}
    assert len(by_run) == 200
    for first, second in zip(sent[::2], sent[1::2], strict=True):
        assert (first.jobs[0].outcome, second.jobs[0].outcome) == ("enqueued", "duplicate")
        assert by_run[first.jobs[0].run_id] == first.event_id
        assert second.jobs[0].run_id == first.jobs[0].run_id


async def test_a_cancelled_async_send_leaves_the_others_be(dsn, connection):
    async with AsyncClient(job(), dsn) as client:
        sends = [asyncio.create_task(client.send("event", {}, id=f"e{n}")) for n in range(10)]
        await asyncio.sleep(0)
        sends[4].cancel()
        results = await asyncio.gather(*sends, return_exceptions=True)
    assert [isinstance(one, asyncio.CancelledError) for one in results].count(True) == 1
    assert {run.event_id for run in runs(connection)} >= {f"e{n}" for n in range(10) if n != 4}


def test_what_became_of_an_event_is_kept_job_by_job_as_it_was_told(dsn, connection):
    compiled = jobs(plain={}, burst={"debounce": {"period": "1m"}})
    with Client(compiled, dsn) as client:
        sent = client.send_many([Event("event", {}, name) for name in "ab"])
    told = {(one.event_id, job.job_id): job for one in sent for job in one.jobs}
    (run, *_) = claim(connection, "plain", token=(token := uuid4()))
    failure = Failure(run.run_id, token, None, "attempts-used", "no", "{}")
    assert fetch(connection, SQL.fail([failure]))
    known = {(row.event_id, row.job_id): row for row in fetch(connection, SQL.known_events("ab"))}
    assert known.keys() == told.keys()
    for key, row in known.items():
        assert (row.outcome, row.run_id) == (told[key].outcome, told[key].run_id)
        assert row.run_at is not None
