"""Debounce: a burst of events is one pending run, of the latest event, with a cap that holds."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from uuid import uuid4

import pytest

from burstkit import BOTH, BY_KEY, PERIOD, TIMEOUT, send, send_once
from enginekit import (
    REFRESH,
    SQL,
    claim,
    dead_letters,
    fail,
    job,
    jobs,
    release,
    run_of,
    runs,
    used_keys,
)
from jobspec_engine import Client, Event
from jobspec_engine.calls import fetch

pytestmark = pytest.mark.usefixtures("each_send")


@pytest.fixture
def client(dsn, clock):
    with Client(job(**BY_KEY), dsn) as client:
        yield client


@pytest.fixture
def both(dsn, clock):
    with Client(job(**BOTH), dsn) as client:
        yield client


# The burst


def test_a_burst_is_one_pending_run_of_the_last_event_a_period_after_its_arrival(
    client, clock, connection
):
    first = send(client, id="first")
    for n in range(5):
        last_arrival = clock.advance(2)
        last = send(client, id=f"later-{n}")
    run = run_of(connection)
    assert (first.outcome, last.outcome, last.run_id) == ("enqueued", "coalesced", first.run_id)
    assert first.run_at == clock.START + PERIOD
    assert last.run_at == run.run_at == last_arrival + PERIOD
    assert (run.state, run.event_id, run.events) == ("pending", "later-4", 6)
    assert (run.enqueued_at, run.run_by) == (clock.START, clock.START + TIMEOUT)


def test_two_keys_make_two_runs(client, connection):
    send(client, "a")
    send(client, "b")
    assert [run.debounce_key for run in runs(connection)] == ["a", "b"]


def test_the_same_key_of_two_jobs_makes_two_runs(dsn, connection):
    with Client(jobs(a=dict(BY_KEY), b=dict(BY_KEY)), dsn) as client:
        client.send("event", {"key": "k"})
        client.send("event", {"key": "k"})
    assert [(run.job_id, run.events) for run in runs(connection)] == [("a", 2), ("b", 2)]


def test_without_a_key_all_events_of_the_job_are_one_burst(dsn, connection):
    with Client(job(debounce={"period": "10s"}), dsn) as client:
        send(client, "a")
        send(client, "b")
    run = run_of(connection)
    assert (run.events, run.debounce_key, run.debounce_digest) == (2, "", sha256(b"").digest())


def test_events_without_a_value_for_the_key_are_one_burst(client, connection):
    client.send("event", {})
    client.send("event", {"other": 1})
    send(client, False)  # noqa: FBT003  an event's value
    assert (run_of(connection).debounce_key, run_of(connection).events) == ("false", 3)


def test_events_whose_key_is_an_error_are_dead_letters_one_by_one(dsn, connection):
    """Unlike the reference, whose key for all of them is `<invalid>`."""
    options = {"debounce": {"key": "event.data.a + event.data.b", "period": "10s"}}
    with Client(job(**options), dsn) as client:
        sent = [client.send("event", {"a": None, "b": None}).jobs[0] for _ in range(2)]
    assert [one.outcome for one in sent] == ["dead-letter"] * 2
    assert sent[0].reason.startswith("the debounce key `event.data.a + event.data.b` adds values")
    assert len({one.run_id for one in sent}) == 2
    assert [dead.reason for dead in dead_letters(connection)] == ["key-error"] * 2
    assert all(run.finished_at for run in runs(connection))


@pytest.mark.parametrize(
    ("installation_id", "key"),
    [
        ("12345678", "12345678/acme/web"),
        (12345678, "1.2345678e+07/acme/web"),
        (123456, "123456/acme/web"),
    ],
)
def test_the_key_of_code_graph_refresh_is_the_reference_s(dsn, connection, installation_id, key):
    payload = {
        "installationId": installation_id,
        "repoOwner": "acme",
        "repoName": "web",
        "ref": "refs/heads/main",
        "commits": [{"id": "f00", "message": "fix: größer 🚀", "distinct": True}],
        "forced": False,
    }
    refresh = jobs(**{"system.code-graph-refresh": {"event": "github/push", **REFRESH}})
    with Client(refresh, dsn) as client:
        (sent,) = client.send("github/push", payload).jobs
    run = run_of(connection)
    assert (run.id, run.debounce_key) == (sent.run_id, key)
    assert run.run_at - run.enqueued_at == timedelta(minutes=2)
    assert run.run_by - run.enqueued_at == timedelta(minutes=15)


# Which event is the latest


def test_an_older_event_that_arrives_late_neither_replaces_nor_postpones(client, clock, connection):
    send(client, id="new", ts=2_000)
    due = run_of(connection).run_at
    clock.advance(3)
    late = send(client, id="old", ts=1_999)
    run = run_of(connection)
    assert (run.event_id, run.event_ts, run.run_at, run.events) == ("new", 2_000, due, 2)
    assert (late.outcome, late.run_at) == ("coalesced", due)


def test_of_events_with_the_same_ts_the_one_that_arrives_last_is_the_latest(
    client, clock, connection
):
    send(client, id="first", ts=1_000)
    arrival = clock.advance(3)
    send(client, id="second", ts=1_000)
    run = run_of(connection)
    assert (run.event_id, run.run_at) == ("second", arrival + PERIOD)


def test_a_batch_stands_by_its_latest_event(client, connection):
    events = [("a", 1_000), ("b", 3_000), ("c", 2_000), ("d", 3_000), ("e", 1)]
    sent = client.send_many([Event("event", {"key": "k"}, event_id, ts) for event_id, ts in events])
    run = run_of(connection)
    assert (run.event_id, run.event_ts, run.events) == ("d", 3_000, 5)
    assert [one.jobs[0].outcome for one in sent] == ["enqueued"] + ["coalesced"] * 4
    assert {one.jobs[0].run_id for one in sent} == {run.id}


def test_runs_of_a_batch_have_their_ids_in_the_order_of_its_events(client, connection):
    names = list("cabed")
    client.send_many([Event("event", {"key": name}, name) for name in names])
    assert [run.event_id for run in runs(connection)] == names


def test_a_batch_of_older_events_does_not_replace_but_counts(client, connection):
    send(client, id="new", ts=9_000)
    client.send_many([Event("event", {"key": "k"}, ts=ts) for ts in (1, 2)])
    assert (run_of(connection).event_id, run_of(connection).events) == ("new", 3)


def test_an_event_without_a_ts_is_as_old_as_its_arrival(client, clock, connection):
    send(client, id="now")
    milliseconds = int(clock.START.timestamp() * 1000)
    assert run_of(connection).event_ts == milliseconds
    send(client, id="older", ts=milliseconds - 1)
    assert run_of(connection).event_id == "now"
    send(client, id="newer", ts=milliseconds + 1)
    assert run_of(connection).event_id == "newer"


def test_an_event_sent_again_does_not_postpone(client, clock, connection):
    send(client, id="e")
    due = run_of(connection).run_at
    clock.advance(3)
    assert send(client, id="e").outcome == "duplicate"
    assert (run_of(connection).run_at, run_of(connection).events) == (due, 1)


# The cap


@pytest.mark.parametrize("per_second", [1, 10, 100])
def test_a_stream_that_outlives_the_window_runs_by_its_first_arrival_plus_the_timeout(
    dsn, clock, connection, per_second
):
    period, timeout = timedelta(seconds=2), timedelta(seconds=5)
    options = {"debounce": {"period": period, "timeout": timeout}}
    latest, claimed = timedelta(0), 0
    with Client(job(**options), dsn) as client:
        first_arrival = clock.now()
        for _ in range(12 * per_second):
            now = clock.now()
            (sent,) = client.send("event", {}).jobs
            assert sent.run_at == min(now + period, first_arrival + timeout)
            latest = max(latest, sent.run_at - first_arrival)
            if clock.advance(1 / per_second) >= sent.run_at:
                (run,) = claim(connection)
                assert run.run_id == sent.run_id
                first_arrival, claimed = clock.now(), claimed + 1
    assert (latest, claimed) == (timeout, 2)


def test_events_after_the_cap_join_the_run_as_long_as_nobody_claimed_it(client, clock, connection):
    send(client, id="first")
    for n in range(12):
        clock.advance(5)
        sent = send(client, id=f"later-{n}")
        assert sent.run_at <= clock.START + TIMEOUT
    run = run_of(connection)
    assert (run.run_at, run.event_id) == (clock.START + TIMEOUT, "later-11")


def test_without_a_timeout_a_stream_puts_its_run_off_for_as_long_as_it_lasts(
    dsn, clock, connection
):
    with Client(job(debounce={"period": "10s"}), dsn) as client:
        for _ in range(50):
            now = clock.advance(9)
            client.send("event", {})
    assert (run_of(connection).run_at, run_of(connection).run_by) == (now + PERIOD, None)


# A run once claimed


def stay_running(connection, run, token):
    return [run.run_id]


def reclaim(connection, run, token):
    connection.execute(
        "update jobspec.job_queue set lease_until = '2000-01-01' where state = 'running'"
    )
    return [one.run_id for one in fetch(connection, SQL.reclaim(5, 100))]


@pytest.mark.parametrize(
    ("what_happens", "state"),
    [
        (stay_running, "running"),
        (fail, "pending"),
        (release, "pending"),
        (reclaim, "pending"),
    ],
)
@pytest.mark.parametrize("sent_before", [True, False])
def test_a_run_once_claimed_is_never_coalesced_into(
    client, clock, connection, what_happens, state, sent_before
):
    first = send(client, id="first")
    clock.advance(PERIOD)
    token = uuid4()
    (run,) = claim(connection, token=token)
    if sent_before:  # going back to pending must not hit the index either
        second = send(client, id="second")
    assert what_happens(connection, run, token) == [first.run_id]
    if not sent_before:
        second = send(client, id="second")
    assert (second.outcome, second.run_id != first.run_id) == ("enqueued", True)
    assert [(one.event_id, one.state) for one in runs(connection)] == [
        ("first", state),
        ("second", "pending"),
    ]
    assert send(client, id="third").run_id == second.run_id


# Both options


def test_a_duplicate_is_dropped_before_it_touches_the_burst(both, clock, connection):
    send_once(both, "x", id="first")
    before = run_of(connection)
    clock.advance(3)
    assert send_once(both, "x", id="second").outcome == "duplicate"
    assert run_of(connection) == before


def test_a_key_that_coalesced_into_another_s_run_counts_as_used(both, clock, connection):
    first = send_once(both, "x", id="first")
    joined = send_once(both, "y", id="second")
    assert (joined.outcome, joined.run_id) == ("coalesced", first.run_id)
    clock.advance(PERIOD)
    claim(connection)
    again = send_once(both, "y", id="third")
    assert (again.outcome, again.run_id) == ("duplicate", first.run_id)
    assert used_keys(connection) == {"x": (first.run_id, 1), "y": (first.run_id, 2)}


def test_a_batch_decides_idempotency_before_debounce(both, connection):
    data = [("x", "k"), ("x", "other"), ("y", "k"), ("x", "k"), ("z", "other"), ("y", "k")]
    sent = both.send_many([Event("event", {"once": once, "key": key}) for once, key in data])
    k, other = runs(connection)
    assert [(one.jobs[0].outcome, one.jobs[0].run_id) for one in sent] == [
        ("enqueued", k.id),
        ("duplicate", k.id),
        ("coalesced", k.id),
        ("duplicate", k.id),
        ("enqueued", other.id),
        ("duplicate", k.id),
    ]
    assert (k.events, other.events) == (2, 1)


def test_a_duplicate_of_what_coalesced_in_its_batch_is_told_the_run_that_was_made(both):
    first, *_ = both.send_many(
        [Event("event", {"once": once, "key": "k"}, name) for once, name in ("a1", "b2", "b3")]
    )
    again = send_once(both, "b", id="3")
    assert (again.outcome, again.run_id) == ("duplicate", first.jobs[0].run_id)


def test_a_dead_letter_names_its_own_run_beside_a_burst_with_its_key(dsn, connection):
    options = BY_KEY | {"idempotency": "event.data.a + event.data.b"}
    events = [
        Event("event", {"a": True, "b": True, "key": "k"}),
        Event("event", {"a": "x", "b": "y", "key": "k"}),
    ]
    with Client(job(**options), dsn) as client:
        broken, sound = [one.jobs[0] for one in client.send_many(events)]
    assert (broken.outcome, sound.outcome) == ("dead-letter", "enqueued")
    assert [dead.run_id for dead in dead_letters(connection)] == [broken.run_id]
    assert broken.run_id != sound.run_id
