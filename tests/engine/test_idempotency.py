"""Idempotency: two events with one key make one run, for good or as long as the spec says."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from uuid import uuid4

import psycopg
import pytest

from databases import together
from enginekit import (
    EMAIL,
    blocked,
    claim,
    complete,
    count,
    dead_letters,
    fail,
    job,
    jobs,
    release,
    run_of,
    runs,
    until,
    used_keys,
)
from jobspec_engine import Client, Event

pytestmark = pytest.mark.usefixtures("each_send")

ROUNDS = 200
SENDERS = 16
ONCE = {"idempotency": "event.data.key"}


@pytest.fixture
def email(dsn):
    with Client(job("email.send", event="email.send", **EMAIL), dsn) as client:
        yield client


@pytest.fixture
def once(dsn):
    with Client(job(**ONCE), dsn) as client:
        yield client


def told(sent):
    (dispatched,) = sent.jobs
    return dispatched


def test_two_events_with_the_same_key_make_one_run(email, connection):
    first = told(email.send("email.send", {"idempotencyKey": "welcome-42"}))
    second = told(email.send("email.send", {"idempotencyKey": "welcome-42"}))
    assert (first.outcome, second.outcome) == ("enqueued", "duplicate")
    assert second.run_id == first.run_id == run_of(connection).id
    assert second.run_at is None


def test_two_keys_make_two_runs(once, connection):
    once.send("event", {"key": "a"})
    once.send("event", {"key": "b"})
    assert len(runs(connection)) == 2


def test_a_job_without_the_option_makes_a_run_of_every_event(dsn, connection):
    with Client(job(), dsn) as client:
        for _ in range(3):
            assert told(client.send("event", {"key": "a"})).outcome == "enqueued"
    assert len(runs(connection)) == 3


def test_an_absent_key_is_told_with_the_field_that_is_missing(once):
    (told,) = once.send("event", {"kye": "k"}).jobs
    assert (told.outcome, told.reason) == (
        "enqueued",
        "no idempotency key: event.data.key is missing",
    )
    (told,) = once.send("event", {"key": False}).jobs
    assert told.reason == "no idempotency key: `event.data.key` is false"
    (told,) = once.send("event", {"key": "k"}).jobs
    assert (told.outcome, told.reason) == ("enqueued", None)
    for data in ({"key": "k"}, {"key": None}, {"key": ""}):
        assert once.send("event", data).jobs[0].reason is None


def test_an_absent_key_is_told_with_all_fields_that_are_missing(dsn):
    with Client(job(idempotency="event.data.a + event.data.b.c"), dsn) as client:
        reason = told(client.send("event", {})).reason
    assert reason == "no idempotency key: event.data.a, event.data.b.c is missing"


def test_an_absent_key_is_not_deduplicated(once, connection):
    for data in ({}, {"other": 1}, {"key": False}):
        assert told(once.send("event", data)).outcome == "enqueued"
    assert len(runs(connection)) == 3
    assert not used_keys(connection)


def test_null_is_a_key_like_any_other(once, connection):
    outcomes = [told(once.send("event", {"key": None})).outcome for _ in range(2)]
    assert outcomes == ["enqueued", "duplicate"]
    assert list(used_keys(connection)) == ["NULL_VALUE"]


def test_the_same_text_from_two_types_is_the_same_key(once):
    assert told(once.send("event", {"key": 1})).outcome == "enqueued"
    assert told(once.send("event", {"key": "1"})).outcome == "duplicate"


def test_two_jobs_use_a_key_independently(dsn, connection):
    with Client(jobs(a=dict(ONCE), b=dict(ONCE)), dsn) as client:
        first = client.send("event", {"key": "k"})
        second = client.send("event", {"key": "k"})
    assert [one.outcome for one in first.jobs] == ["enqueued", "enqueued"]
    assert [one.outcome for one in second.jobs] == ["duplicate", "duplicate"]
    assert [run.job_id for run in runs(connection)] == ["a", "b"]


def test_a_key_holds_for_good_and_outlives_its_run(once, connection, clock):
    first = told(once.send("event", {"key": "k"}))
    connection.execute("delete from jobspec.job_queue")
    connection.execute("delete from jobspec.job_event")
    clock.advance(timedelta(days=3650))
    assert told(once.send("event", {"key": "k"})) == first.__class__(
        "job", "duplicate", first.run_id
    )
    assert not runs(connection)


def test_a_key_is_free_again_when_its_window_has_ended_and_not_before(dsn, clock, connection):
    hour = timedelta(hours=1)
    with Client(job(idempotency={"key": "event.data.key", "window": hour}), dsn) as client:
        first = told(client.send("event", {"key": "k"}))
        clock.set(clock.START + hour - timedelta(microseconds=1))
        within = told(client.send("event", {"key": "k"}))
        clock.set(clock.START + hour)
        second = told(client.send("event", {"key": "k"}))
    assert (within.outcome, within.run_id) == ("duplicate", first.run_id)
    assert second.outcome == "enqueued"
    assert used_keys(connection) == {"k": (second.run_id, 1)}


ENDS = {
    "completed": complete,
    "failed": partial(fail, delay=None),
    "retried": fail,
    "given back": release,
}


@pytest.mark.parametrize("window", ["while-active", "forever"])
@pytest.mark.parametrize("end", ENDS)
def test_a_key_is_free_at_the_end_of_its_run_if_it_counts_for_so_long(dsn, connection, window, end):
    keyed = {"key": "event.data.key", "window": window}
    active = {"key": "event.data.key", "window": "while-active"}
    token = uuid4()
    with Client(jobs(job={"idempotency": keyed}, beside={"idempotency": active}), dsn) as client:
        client.send("event", {"key": "k"})
        (run,) = claim(connection, token=token)
        again = client.send("event", {"key": "k"}).jobs
        assert [one.outcome for one in again] == ["duplicate"] * 2
        assert ENDS[end](connection, run, token)
        outcome, beside = [one.outcome for one in client.send("event", {"key": "k"}).jobs]
    assert beside == "duplicate"
    is_free = window == "while-active" and end in {"completed", "failed"}
    assert outcome == ("enqueued" if is_free else "duplicate")


def test_every_event_that_came_with_a_key_is_counted(once, connection):
    first = told(once.send("event", {"key": "k"}))
    once.send("event", {"key": "k"})
    once.send_many([Event("event", {"key": "k"}) for _ in range(3)])
    assert used_keys(connection) == {"k": (first.run_id, 5)}


def test_the_first_event_of_a_batch_with_a_key_makes_the_run(once, connection):
    sent = once.send_many([Event("event", {"key": key}, name) for key, name in ("ka", "lb", "kc")])
    assert [told(one).outcome for one in sent] == ["enqueued", "enqueued", "duplicate"]
    assert told(sent[2]).run_id == told(sent[0]).run_id
    assert [run.event_id for run in runs(connection)] == ["a", "b"]


def test_runs_of_a_batch_have_their_ids_in_the_order_of_its_events(once, connection):
    """Runs that are due at the same time are claimed by id."""
    names = list("cabed")
    once.send_many([Event("event", {"key": name}, name) for name in names])
    assert [run.event_id for run in runs(connection)] == names


def test_an_event_id_that_was_sent_before_starts_nothing_again(dsn, connection):
    with Client(job(), dsn) as client:
        first = told(client.send("event", {"n": 1}, id="e"))
        again = told(client.send("event", {"n": 2}, id="e"))
        batch = client.send_many([Event("event", {}, "f"), Event("event", {}, "f")])
    assert (again.outcome, again.run_id) == ("duplicate", first.run_id)
    assert [told(one).outcome for one in batch] == ["enqueued", "duplicate"]
    assert told(batch[0]).run_id == told(batch[1]).run_id
    assert [run.event_id for run in runs(connection)] == ["e", "f"]
    stored = connection.execute("select data::text from jobspec.job_event where id = 'e'")
    assert stored.fetchone() == ('{"n":1}',)


def test_an_event_id_sent_again_does_not_use_a_new_key(once, connection):
    once.send("event", {"key": "a"}, id="e")
    once.send("event", {"key": "b"}, id="e")
    assert list(used_keys(connection)) == ["a"]
    assert told(once.send("event", {"key": "b"})).outcome == "enqueued"


def test_an_event_that_starts_nothing_is_kept_all_the_same(once, connection):
    assert once.send("unheard", {}).jobs == ()
    assert once.send("unheard", {}, id="e").jobs == once.send("unheard", {}, id="e").jobs == ()
    assert (count(connection, "job_event"), count(connection, "job_queue")) == (2, 0)


def test_an_event_whose_key_is_an_error_goes_to_the_dead_letters(dsn, connection):
    """Neither lost, as the reference does, nor merged with every other broken event."""
    with Client(job(idempotency="event.data.a + event.data.b"), dsn) as client:
        sent = [told(client.send("event", {"a": True, "b": True})) for _ in range(2)]
    assert [one.outcome for one in sent] == ["dead-letter", "dead-letter"]
    assert sent[0].reason.startswith("the idempotency key `event.data.a + event.data.b` adds")
    assert [(dead.run_id, dead.reason) for dead in dead_letters(connection)] == [
        (one.run_id, "key-error") for one in sent
    ]
    assert {run.state for run in runs(connection)} == {"failed"}
    assert not used_keys(connection)


def test_racing_senders_of_one_key_make_one_run_and_see_no_error(dsn, connection):
    with Client(job(**ONCE), dsn, max_connections=SENDERS) as client:
        for n in range(ROUNDS):
            sends = [partial(client.send, "event", {"key": f"k{n}"}) for _ in range(SENDERS)]
            sent = [told(one) for one in together(*sends)]
            assert sorted(one.outcome for one in sent) == ["duplicate"] * 15 + ["enqueued"]
            assert len({one.run_id for one in sent}) == 1
    assert len(runs(connection)) == ROUNDS
    assert {events for _, events in used_keys(connection).values()} == {SENDERS}


def test_racing_senders_of_one_event_id_make_one_run_and_see_no_error(dsn, connection):
    with Client(job(), dsn, max_connections=SENDERS) as client:
        for n in range(25):
            sends = [partial(client.send, "event", {}, id=f"e{n}") for _ in range(SENDERS)]
            sent = [told(one) for one in together(*sends)]
            assert sorted(one.outcome for one in sent) == ["duplicate"] * 15 + ["enqueued"]
            assert len({one.run_id for one in sent}) == 1
    assert len(runs(connection)) == 25


def test_batches_with_the_same_keys_in_opposite_orders_do_not_deadlock(dsn, connection):
    keys = [f"k{n}" for n in range(40)]
    with Client(job(**ONCE), dsn, max_connections=8) as client:
        for n in range(25):
            events = [Event("event", {"key": f"{n}/{key}"}) for key in keys]
            orders = [events, events[::-1], events[20:] + events[:20], events[::2] + events[1::2]]
            batches = [[Event(e.name, e.data) for e in order] for order in orders * 2]
            answers = together(*(partial(client.send_many, batch) for batch in batches))
            assert all(isinstance(answer, list) for answer in answers), answers
    assert len(runs(connection)) == 25 * len(keys)
    assert {events for _, events in used_keys(connection).values()} == {8}


def test_batches_with_the_same_event_ids_in_opposite_orders_do_not_deadlock(dsn, connection):
    with Client(job(), dsn, max_connections=8) as client:
        for n in range(25):
            events = [Event("event", {}, f"{n}/{i}") for i in range(40)]
            batches = [events, events[::-1]] * 4
            answers = together(*(partial(client.send_many, batch) for batch in batches))
            assert all(isinstance(answer, list) for answer in answers), answers
    assert len(runs(connection)) == 25 * 40


@pytest.mark.parametrize(("end", "outcome"), [("commit", "duplicate"), ("rollback", "enqueued")])
def test_a_sender_waits_for_the_one_that_took_its_key_first(once, dsn, connection, end, outcome):
    with psycopg.connect(dsn) as taking:
        first = told(once.send("event", {"key": "k"}, connection=taking))

        def finish():
            until(lambda: blocked(connection), "the second sender's wait")
            getattr(taking, end)()

        second, finished = together(lambda: told(once.send("event", {"key": "k"})), finish)
    assert finished is None
    assert second.outcome == outcome
    assert (second.run_id == first.run_id) is (end == "commit")
    assert len(runs(connection)) == 1


def test_two_schemas_in_one_database_do_not_share_keys(once, dsn):
    from jobspec_engine.migrate import migrate

    migrate(dsn, schema="other place")
    with Client(job(**ONCE), dsn, schema="other place") as other:
        assert told(once.send("event", {"key": "k"})).outcome == "enqueued"
        assert told(other.send("event", {"key": "k"})).outcome == "enqueued"
        assert told(other.send("event", {"key": "k"})).outcome == "duplicate"


def test_a_key_that_names_the_run_its_event_joined_is_that_of_one_job(dsn, connection):
    both = {"idempotency": "event.data.key", "debounce": {"period": "1m"}}
    compiled = jobs(one={"event": "one", **both}, other={"event": "other", **both})
    with Client(compiled, dsn) as client:
        (other,) = client.send("other", {"key": "k"}).jobs
        (one,) = client.send("one", {"key": "first"}).jobs
        assert client.send("one", {"key": "k"}).jobs[0].outcome == "coalesced"
    named = connection.execute(
        "select job_id, run_id from jobspec.job_idempotency where key = 'k' order by job_id"
    ).fetchall()
    assert named == [("one", one.run_id), ("other", other.run_id)]
