"""What each way to send does alike: events by jobs without keys, with keys of one kind, of both."""

from __future__ import annotations

import psycopg
import pytest

from enginekit import job, run_of, runs
from jobspec_engine import Client, Event
from meetingkit import assert_no_error, meeting

ONCE = {"idempotency": "event.data.key"}
CALM = {"debounce": {"key": "event.data.key", "period": "1m"}}
WAYS = {"plain": {}, "idempotent": ONCE, "debounced": CALM, "general": ONCE | CALM}


@pytest.fixture(params=WAYS)
def client(request, dsn):
    with Client(job(**WAYS[request.param]), dsn) as client:
        yield client


def test_an_id_that_is_known_starts_nothing(client, connection):
    first = client.send("event", {"key": 1}, id="e").jobs[0]
    again = client.send("event", {"key": 2}, id="e").jobs[0]
    assert (again.outcome, again.run_id) == ("duplicate", first.run_id)
    assert (run_of(connection).id, run_of(connection).events) == (first.run_id, 1)


def test_an_event_keeps_the_time_of_its_sender(client, connection):
    client.send("event", {"key": 1}, ts=7)
    assert connection.execute("select ts from jobspec.job_event").fetchall() == [(7,)]
    assert run_of(connection).event_ts == 7


def test_runs_are_numbered_as_their_events_were_given(client, connection):
    sent = client.send_many([Event("event", {"key": key}, key) for key in "cab"])
    assert [run.event_id for run in runs(connection)] == ["c", "a", "b"]
    assert [one.jobs[0].run_id for one in sent] == [run.id for run in runs(connection)]


def test_runs_of_new_events_are_numbered_as_these_were_given(client, connection):
    sent = client.send_many([Event("event", {"key": key}) for key in "cab"])
    assert [run.event_id for run in runs(connection)] == [one.event_id for one in sent]
    assert [one.jobs[0].run_id for one in sent] == [run.id for run in runs(connection)]


def test_events_of_two_batches_are_locked_in_one_order(client, dsn, connection):
    """Each is stopped at an event of a third, when it has those that come before."""

    def send(*ids):
        with psycopg.connect(dsn) as own:
            return client.send_many([Event("event", {"key": i}, i) for i in ids], connection=own)

    told = meeting(
        dsn,
        connection,
        "insert into jobspec.job_event values ('b', 'event', '{}', 0, now())",
        lambda: send("a", "b", "c"),
        lambda: send("c", "b", "a"),
        end=psycopg.Connection.rollback,
    )
    assert_no_error(told)
    assert sorted(run.event_id for run in runs(connection)) == ["a", "b", "c"]
