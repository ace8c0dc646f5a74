"""Each role does all of its work, as a member that is in no other role."""

from __future__ import annotations

from datetime import timedelta

import psycopg

from enginekit import job, jobs, run_until_idle, runs
from jobspec_engine import AsyncClient, Client, DeadLetters, Event, Retention
from jobspec_engine.access import give_access
from jobspec_engine.migrate import SHIPPED, migrate, pending
from proof.accesskit import BURST, HOUR, command, fills, member


async def test_a_sender_sends(access, connection):
    compiled = jobs(
        once={"idempotency": "event.data.key"},
        window={"idempotency": {"key": "event.data.key", "window": "1h"}},
        burst={"debounce": BURST},
        broken={"idempotency": "event.data.o + event.data.o"},
    )
    with member(access, "sender") as dsn:
        with Client(compiled, dsn) as client:
            sent = [client.send("event", {"key": 1, "o": {}}, id="one") for _ in range(2)]
            client.send_many(Event("event", {"key": 1}) for _ in range(6_000))
            connection.execute("update jobspec.job_idempotency set expires_at = now()")
            client.send("event", {"key": 1})
        async with AsyncClient(compiled, dsn) as client:
            await client.send("event", {"key": 2})
    outcomes = {one.job_id: one.outcome for one in sent[0].jobs}
    assert outcomes == {
        "once": "enqueued",
        "window": "enqueued",
        "burst": "enqueued",
        "broken": "dead-letter",
    }
    assert {one.outcome for one in sent[1].jobs} == {"duplicate"}


def test_a_sender_adds_jobs_in_every_mode(access, connection):
    with member(access, "sender") as dsn, Client(job(), dsn) as client:
        client.add_job("job")
        for mode in ("replace", "preserve_run_at", "unsafe_dedupe"):
            client.add_job("job", job_key="key", job_key_mode=mode, delay=HOUR)
        client.add_job(
            "job", job_key="key", job_key_mode="debounce", delay=HOUR, max_debounce=2 * HOUR
        )
        with psycopg.connect(dsn, autocommit=True) as own:
            own.execute("select * from jobspec.add_job('job', '{}', job_key => 'key')")
    assert [run.events for run in runs(connection)] == [1, 5]


async def test_a_sender_wakes_a_run_that_waits_for_its_event(access, connection):
    compiled = fills()
    with Client(compiled, access) as client:
        client.send("event", {"key": 1})
    await run_until_idle(compiled, access)
    with member(access, "sender") as dsn, Client(compiled, dsn) as client:
        client.send("stopped", {})
    (state,) = connection.execute(
        "select state from jobspec.job_step where kind = 'wait'"
    ).fetchone()
    assert state == "done"


def test_a_sender_sends_by_the_command(access, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = tmp_path / "jobs.yaml"
    spec.write_text("jobs: [{id: job, triggers: [{event: event}], handler: 'handlers:job'}]")
    with member(access, "sender") as dsn:
        assert "enqueued" in command(dsn, "send", "event", "--jobs", str(spec))


async def test_a_worker_does_all_that_runs_take(access, connection):
    seen = []

    async def steps(context):
        await context.step.run("look", lambda: 1)
        await context.step.sleep("rest", timedelta(0))
        await context.step.send_event("told", {})
        await context.step.wait_for_event("stopped", timeout=timedelta(0))
        return await context.step.invoke("child")

    async def fails(context):
        raise ValueError

    async def stops(context):
        seen.append(context.run_id)

    compiled = jobs(
        steps={"handler": steps, "idempotency": "event.data.key"},
        child={"event": "told", "handler": stops},
        fails={"handler": fails, "retries": 0},
    )
    with member(access, "worker") as dsn:
        with Client(compiled, dsn) as client:
            client.send("event", {"key": 1})
            client.add_job("child", job_key="later", delay=HOUR)
            client.pause("fails")
            await run_until_idle(compiled, dsn, retention=Retention())
            client.resume("fails")
            await run_until_idle(compiled, dsn)
            (replayed,) = client.replay_many(DeadLetters())
            assert client.cancel(replayed.replayed_as or 0)
            (cancelled,) = client.cancel_by_key("child", job_key="later")
            assert cancelled.outcome == "cancelled"
        assert "deleted" in command(dsn, "prune", "--runs", "0s", "--dead-letters", "0s")
    assert len(seen) == 2
    assert {run.state for run in runs(connection)} <= {"pending"}  # what was replayed


def test_an_owner_migrates_and_gives_what_it_made(access, connection, tmp_path):
    for file in SHIPPED.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    number = len(pending(access, "not migrated")) + 1
    (tmp_path / f"{number:04}_more.sql").write_text(
        "alter table {schema}.job_queue add more int; create table {schema}.more (a int);"
    )
    with member(access, "owner") as dsn:
        assert [step.name for step in migrate(dsn, folder=tmp_path)] == ["more"]
        assert give_access(dsn).lacking == ()
        with psycopg.connect(dsn) as owner:
            owner.execute("drop table jobspec.more")
