"""Runs that ended without success, sent again: once each, with new data if wanted, not too fast."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import psycopg
import pytest

from databases import together
from enginekit import claim, count, job, jobs, run_of, run_until_idle, runs, used_keys
from jobspec import EventError
from jobspec_engine import AsyncClient, Client, DeadLetters, Event, NonRetriable, Replayed, replay
from jobspec_engine.errors import ArgumentError, ReplayError

SECOND = timedelta(seconds=1)
ONCE = {"idempotency": "event.data.key"}
NEEDS_TEXT = {"idempotency": "event.data.a + event.data.b"}
BROKEN = {"a": True, "b": True}


class Fails:
    """A handler that fails until it is mended, and tells what it was given."""

    def __init__(self):
        self.mended = False
        self.given = []

    async def __call__(self, context):
        self.given.append((context.event.name, context.event.data, context.event.ts))
        if not self.mended:
            raise NonRetriable("no")
        return "mended"


@pytest.fixture
def fails():
    return Fails()


async def die(client, compiled, dsn, *data, **options):
    """Send events, let their runs die, and return the ids of these."""
    sent = [client.send("event", one, **options) for one in data or [{}]]
    await run_until_idle(compiled, dsn)
    return [one.jobs[0].run_id for one in sent]


async def test_a_dead_run_is_sent_again_with_its_name_its_data_and_its_time(dsn, connection, fails):
    compiled = job(handler=fails, **ONCE)
    with Client(compiled, dsn) as client:
        (dead,) = await die(client, compiled, dsn, {"key": "k", "n": [1]}, ts=5)
        fails.mended = True
        replayed = client.replay(dead)
    await run_until_idle(compiled, dsn)
    old, new = runs(connection)
    assert replayed == Replayed(dead, "enqueued", new.id, new.run_at)
    assert (old.state, old.replayed_as) == ("failed", new.id)
    assert (new.state, new.result, new.replayed_as) == ("completed", "mended", None)
    assert fails.given == [("event", {"key": "k", "n": [1]}, 5)] * 2


async def test_idempotency_does_not_drop_a_replay_and_still_drops_a_second_event(
    dsn, connection, fails
):
    compiled = job(handler=fails, **ONCE)
    with Client(compiled, dsn) as client:
        (dead,) = await die(client, compiled, dsn, {"key": "k"})
        new = client.replay(dead).replayed_as
        assert client.send("event", {"key": "k"}).jobs[0].outcome == "duplicate"
    assert used_keys(connection) == {"k": (dead, 2), f"k:replay:{dead}": (new, 1)}


@pytest.mark.parametrize("options", [ONCE, {}], ids=["with a key", "without a key"])
async def test_replaying_twice_by_mistake_replays_once(dsn, connection, fails, options):
    compiled = job(handler=fails, **options)
    with Client(compiled, dsn) as client:
        (dead,) = await die(client, compiled, dsn, {"key": "k"})
        first = client.replay(dead)
        again = client.replay(dead, {"key": "other"})
    assert again == Replayed(dead, "duplicate", first.replayed_as)
    assert len(runs(connection)) == 2


@pytest.mark.parametrize("options", [ONCE, {}], ids=["with a key", "without a key"])
async def test_many_who_replay_the_same_run_at_once_replay_it_once(dsn, connection, fails, options):
    compiled = job(handler=fails, **options)
    with Client(compiled, dsn, max_connections=16) as client:
        dead = await die(client, compiled, dsn, *[{"key": key} for key in "abc"])
        told = together(*[partial(client.replay_many, order) for order in (dead, dead[::-1]) * 8])
    outcomes = [one.outcome for replayed in told for one in replayed]
    assert sorted(outcomes) == ["duplicate"] * 45 + ["enqueued"] * 3
    assert len({(one.run_id, one.replayed_as) for replayed in told for one in replayed}) == 3
    assert len(runs(connection)) == 6


@pytest.mark.parametrize("options", [ONCE, {}], ids=["with a key", "without a key"])
async def test_a_run_stays_replayed_when_its_replay_was_pruned(dsn, connection, fails, options):
    compiled = job(handler=fails, **options)
    with Client(compiled, dsn) as client:
        (dead,) = await die(client, compiled, dsn, {"key": "k"})
        new = client.replay(dead).replayed_as
        connection.execute("delete from jobspec.job_queue where id = %s", [new])
        connection.execute("delete from jobspec.job_event where id like 'jobspec/replay/%'")
        assert client.replay(dead) == Replayed(dead, "duplicate", new)


def test_by_constraint_the_event_of_a_replay_is_sent_once(dsn, connection):
    with Client(job(**NEEDS_TEXT), dsn) as client:
        dead = client.send("event", BROKEN).jobs[0].run_id
        client.replay(dead, {"a": "x"})
        connection.execute("update jobspec.job_queue set replayed_as = null")
        assert client.replay(dead, {"a": "y"}).outcome == "duplicate"
    assert len(runs(connection)) == 2


async def test_a_replay_that_dies_too_can_be_replayed(dsn, connection, fails):
    compiled = job(handler=fails, **ONCE)
    with Client(compiled, dsn) as client:
        (dead,) = await die(client, compiled, dsn, {"key": "k"})
        second = client.replay(dead).replayed_as
        await run_until_idle(compiled, dsn)
        assert client.replay(second).outcome == "enqueued"
    assert set(used_keys(connection)) == {"k", f"k:replay:{dead}", f"k:replay:{second}"}


# --- data


async def test_a_replay_carries_edited_data_and_resolves_its_keys_anew(dsn, connection, fails):
    compiled = job(handler=fails, **ONCE)
    with Client(compiled, dsn) as client:
        (dead,) = await die(client, compiled, dsn, {"key": "k"})
        client.replay(dead, {"key": "edited"})
    await run_until_idle(compiled, dsn)
    assert fails.given[-1][1] == {"key": "edited"}
    assert set(used_keys(connection)) == {"k", f"edited:replay:{dead}"}


async def test_data_that_is_not_edited_is_sent_to_the_letter(dsn, connection, fails):
    compiled = job(handler=fails)
    text = '{"n": 12345678901234567890123, "nul": "\\u0000", "a": 1.0, "a": 2}'
    connection.execute("select jobspec.add_job('job', %s)", [text])
    await run_until_idle(compiled, dsn)
    with Client(compiled, dsn) as client:
        client.replay(run_of(connection).id)
    kept = connection.execute("select data::text from jobspec.job_event").fetchall()
    assert kept == [(text,)] * 2


def test_a_run_whose_key_errors_is_replayed_once_its_data_is_edited(dsn, connection):
    with Client(job(**NEEDS_TEXT), dsn) as client:
        dead = client.send("event", BROKEN).jobs[0].run_id
        before = [count(connection, table) for table in ("job_queue", "job_event")]
        told = client.replay(dead)
        assert (told.outcome, told.replayed_as) == ("unresolved", None)
        assert "event.data.a + event.data.b" in told.reason
        assert [count(connection, table) for table in ("job_queue", "job_event")] == before
        assert client.replay(dead, {"a": "x", "b": "y"}).outcome == "enqueued"
    assert list(used_keys(connection)) == [f"xy:replay:{dead}"]
    assert [run.state for run in runs(connection)] == ["failed", "pending"]


async def test_data_that_a_job_rejects_is_not_replayed(dsn, connection, fails):
    compiled = job(handler=fails, on_missing="reject", **ONCE)
    with Client(compiled, dsn) as client:
        (dead,) = await die(client, compiled, dsn, {"key": "k"})
        told = client.replay(dead, {"other": 1})
    assert told.outcome == "unresolved"
    assert "event.data.key" in told.reason
    assert len(runs(connection)) == 1


async def test_data_that_can_not_be_kept_is_refused(dsn, connection, fails):
    compiled = job(handler=fails)
    with Client(compiled, dsn) as client:
        (dead,) = await die(client, compiled, dsn)
        for data in ({"n": float("nan")}, [1]):
            with pytest.raises(EventError):
                client.replay(dead, data)
        assert len(runs(connection)) == 1
        assert client.replay(dead, {"n": 1}).outcome == "enqueued"


# --- which runs


def test_a_run_that_did_not_end_without_success_is_not_replayed(dsn, connection):
    with Client(job(), dsn) as client:
        sent = client.send("event", {}).jobs[0].run_id
        assert client.replay(sent) == Replayed(sent, "not-dead")
        claim(connection)
        assert client.replay(sent).outcome == "not-dead"
        connection.execute(
            "update jobspec.job_queue set state = 'completed', finished_at = now(),"
            " lease_token = null, lease_until = null"
        )
        assert client.replay(sent).outcome == "not-dead"
    assert len(runs(connection)) == 1


def test_a_cancelled_run_is_replayed(dsn, connection):
    with Client(job(), dsn) as client:
        sent = client.send("event", {}).jobs[0].run_id
        client.cancel(sent)
        assert client.replay(sent).outcome == "enqueued"
    assert [run.state for run in runs(connection)] == ["cancelled", "pending"]


def test_a_run_that_nobody_knows_is_unknown(dsn):
    with Client(job(), dsn) as client:
        assert client.replay(404) == Replayed(404, "unknown")


async def test_a_run_of_a_job_that_is_not_compiled_is_unknown(dsn, fails):
    compiled = job(handler=fails)
    with Client(compiled, dsn) as client:
        (dead,) = await die(client, compiled, dsn)
    with Client(job("other"), dsn) as client:
        told = client.replay(dead)
    assert (told.outcome, told.reason) == (
        "unknown",
        "there is no job `job` among the compiled jobs; there are `other`",
    )


async def test_a_replay_is_neither_put_off_nor_joined_by_other_events(
    dsn, clock, connection, fails
):
    compiled = job(handler=fails, debounce={"period": "1m"})
    with Client(compiled, dsn) as client:
        client.send("event", {})
        clock.advance(60)
        (dead,) = await die(client, compiled, dsn)
        clock.advance(60)
        await run_until_idle(compiled, dsn)
        waiting = client.send("event", {"n": 1}).jobs[0].run_id
        replayed = client.replay(dead)
        assert replayed.run_at == clock.now()
        joined = client.send("event", {"n": 2}).jobs[0]
    assert (joined.outcome, joined.run_id) == ("coalesced", waiting)
    assert runs(connection)[-1].debounce_key is None


async def test_a_run_that_was_added_keeps_its_priority_and_its_attempts(dsn, connection, fails):
    compiled = job(handler=fails, **NEEDS_TEXT)
    with Client(compiled, dsn) as client:
        added = client.add_job("job", BROKEN, priority=-7, max_attempts=2)
        await run_until_idle(compiled, dsn)
        assert client.replay(added.run_id).outcome == "enqueued"
    assert [(run.priority, run.max_attempts) for run in runs(connection)] == [(-7, 2)] * 2


async def test_a_replay_has_the_attempts_that_its_job_has_now(dsn, connection, fails):
    compiled = job(handler=fails)
    with Client(compiled, dsn) as client:
        (dead,) = await die(client, compiled, dsn)
    with Client(job(retries=9), dsn) as client:
        client.replay(dead)
    assert [run.max_attempts for run in runs(connection)] == [5, 10]


@pytest.fixture
async def graveyard(dsn, clock, fails):
    """A client, and the dead runs of two jobs: a1, b1, and a minute later a2, whose key errors."""
    compiled = jobs(
        a={"event": "a", "handler": fails, **NEEDS_TEXT}, b={"event": "b", "handler": fails}
    )
    with Client(compiled, dsn) as client:
        sent = client.send_many([Event("a", {"a": "x"}), Event("b", {})])
        await run_until_idle(compiled, dsn)
        clock.advance(60)
        sent.append(client.send("a", BROKEN))
        yield client, [one.jobs[0].run_id for one in sent]


def replays(client, which, **options):
    return [(one.run_id, one.outcome) for one in client.replay_many(which, **options)]


async def test_dead_letters_are_replayed_by_what_they_are(graveyard, clock):
    client, (a1, b1, a2) = graveyard
    plan = partial(replays, client, dry_run=True)
    both = [(a1, "enqueued"), (b1, "enqueued")]
    assert plan(DeadLetters()) == [*both, (a2, "unresolved")]
    assert plan(DeadLetters(job_id="a")) == [both[0], (a2, "unresolved")]
    assert plan(DeadLetters(reason="not-retriable")) == both
    assert plan(DeadLetters(since=clock.now())) == [(a2, "unresolved")]
    assert plan(DeadLetters(within=59 * SECOND)) == [(a2, "unresolved")]
    assert plan(DeadLetters(job_id="b", reason="key-error")) == []


@pytest.mark.parametrize("within", [timedelta.max, -SECOND, 60])
async def test_a_time_that_dead_letters_can_not_have_died_in_is_refused(graveyard, within):
    client, _ = graveyard
    with pytest.raises(ArgumentError, match="within must"):
        client.replay_many(DeadLetters(within=within))


async def test_dead_letters_that_were_replayed_are_not_meant_again(graveyard):
    client, (a1, b1, a2) = graveyard
    assert replays(client, DeadLetters(job_id="b")) == [(b1, "enqueued")]
    assert replays(client, DeadLetters()) == [(a1, "enqueued"), (a2, "unresolved")]
    assert replays(client, [b1, a2, b1]) == [(b1, "duplicate"), (a2, "unresolved")]


async def test_a_dry_run_sends_nothing(graveyard, connection):
    client, dead = graveyard
    told = client.replay_many(dead, dry_run=True)
    assert [(one.replayed_as, one.run_at) for one in told] == [(None, None)] * 3
    assert (len(runs(connection)), count(connection, "job_event")) == (3, 3)
    assert client.replay(dead[0]).outcome == "enqueued"


async def test_each_run_s_data_is_edited(graveyard, connection):
    client, dead = graveyard
    client.replay_many(dead, edit=lambda data: {**data, "a": str(data.get("a")), "b": ""})
    sent = connection.execute(
        "select data->>'a' from jobspec.job_event where id like 'jobspec/replay/%' order by id"
    )
    assert sent.fetchall() == [("x",), ("None",), ("True",)]


async def test_a_limited_rate_spaces_the_runs_over_time_and_over_transactions(
    dsn, clock, connection, fails, monkeypatch
):
    monkeypatch.setattr(replay, "_CHUNK", 2)
    compiled = job(handler=fails)
    with Client(compiled, dsn) as client:
        dead = await die(client, compiled, dsn, *[{}] * 5)
        client.replay(dead[1])
        clock.advance(60)
        told = client.replay_many(dead, rate=4)
    due = [(one.run_at - clock.now()).total_seconds() for one in told if one.run_at]
    assert due == [0, 0.25, 0.5, 0.75]
    assert [one.outcome for one in told].index("duplicate") == 1
    assert len(runs(connection)) == 10


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(dsn, rate):
    with Client(job(), dsn) as client, pytest.raises(ReplayError, match="rate must be"):
        client.replay_many([1], rate=rate)


async def test_the_async_client_replays_as_well(dsn, connection, fails):
    compiled = job(handler=fails)
    async with AsyncClient(compiled, dsn) as client:
        (sent,) = (await client.send("event", {})).jobs
        await run_until_idle(compiled, dsn)
        fails.mended = True
        assert (await client.replay(sent.run_id, {"n": 1})).outcome == "enqueued"
        assert await client.replay_many(DeadLetters()) == []
    await run_until_idle(compiled, dsn)
    assert [run.state for run in runs(connection)] == ["failed", "completed"]


# --- dead letters


@pytest.mark.parametrize(
    ("table", "constraint"),
    [("job_queue", "job_dead_letter_run"), ("job_event", "job_dead_letter_event")],
)
async def test_what_a_replay_needs_can_not_be_deleted_before_its_dead_letter(
    dsn, connection, fails, table, constraint
):
    compiled = job(handler=fails)
    with Client(compiled, dsn) as client:
        await die(client, compiled, dsn)
    delete = f"delete from jobspec.{table}"  # noqa: S608
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match=constraint):
        connection.execute(delete)
    connection.execute("delete from jobspec.job_dead_letter")
    connection.execute(delete)


def test_the_reasons_of_dead_letters_are_those_of_the_constraint(dsn, connection):
    (text,) = connection.execute(
        "select pg_get_constraintdef(oid) from pg_constraint"
        " where conname = 'job_dead_letter_reason'"
    ).fetchone()
    assert set(replay.REASONS) == set(text.split("'")[1::2])
