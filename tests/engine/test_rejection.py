"""`on_missing: reject`: an event that lacks a field of a key is refused, and nothing is written."""

from __future__ import annotations

import pytest

from enginekit import count, job, jobs, runs
from jobspec import EventError
from jobspec_engine import Client, Event

ONCE = {"idempotency": "event.data.key"}
BURST = {"debounce": {"key": "event.data.owner + '/' + event.data.repo.name", "period": "2m"}}
REJECTING = {**ONCE, **BURST, "on_missing": "reject"}
WHOLE = {"key": "k", "owner": "acme", "repo": {"name": "web"}}


@pytest.fixture
def client(dsn):
    with Client(jobs(tolerant={**ONCE}, strict={**REJECTING}), dsn) as client:
        yield client


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({**WHOLE, "key": None}, "event.data.key"),
        ({"owner": "acme", "repo": {"name": "web"}}, "event.data.key"),
        ({**WHOLE, "repo": {}}, "event.data.repo.name"),
        ({**WHOLE, "repo": "web"}, "event.data.repo.name"),
        ({}, "event.data.key, event.data.owner, event.data.repo.name"),
    ],
)
def test_an_event_without_a_field_of_a_key_is_refused_and_leaves_nothing(
    client, connection, data, named
):
    with pytest.raises(EventError, match=f"job `strict` rejects this event.* {named}$"):
        client.send("event", data)
    assert {count(connection, table) for table in ("job_event", "job_queue")} == {0}


def test_a_refused_event_leaves_the_others_of_its_batch_unwritten(client, connection):
    with pytest.raises(EventError):
        client.send_many([Event("event", WHOLE), Event("event", {})])
    assert count(connection, "job_event") == 0


def test_an_event_with_all_fields_is_taken(client, connection):
    client.send("event", {**WHOLE, "key": "", "owner": 0, "repo": {"name": False}})
    assert len(runs(connection)) == 2


@pytest.mark.parametrize("option", [ONCE, BURST, {"debounce": {"period": "2m"}}])
def test_a_job_rejects_for_the_keys_that_it_has(dsn, connection, option):
    with Client(job(**option, on_missing="reject"), dsn) as client:
        client.send("event", WHOLE)
    assert len(runs(connection)) == 1


def test_a_job_that_rejects_nothing_takes_an_event_without_the_field(dsn, connection):
    with Client(job(**ONCE), dsn) as client:
        client.send("event", {})
    assert len(runs(connection)) == 1
