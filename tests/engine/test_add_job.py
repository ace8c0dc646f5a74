"""Runs without an event: keys and their modes, from Python and from plain SQL alike."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from databases import together
from enginekit import PATIENCE, claim, count, job, run_of, runs, until
from jobspec_engine import AsyncClient, Client
from jobspec_engine.errors import AddJobError

WINDOW, BOUND = timedelta(seconds=2), timedelta(seconds=10)
DEBOUNCE = {
    "job_key": "k",
    "job_key_mode": "debounce",
    "delay": WINDOW,
    "max_debounce": BOUND,
}


@pytest.fixture
def client(dsn):
    with Client(job(), dsn) as opened:
        yield opened


@pytest.fixture(params=["from Python", "from SQL"])
def add(request, client, connection):
    """Add a run through either door; the outcome, the run and when it is due come back."""

    def from_python(payload=None, **options):
        told = client.add_job("job", payload, **options)
        return told.outcome, told.run_id, told.run_at

    def from_sql(payload=None, **options):
        named = {"job_id": "job", "payload": json.dumps(payload or {}), **options}
        arguments = ", ".join(f"{name} => %({name})s" for name in named)
        text = f"select outcome, run_id, due from jobspec.add_job({arguments})"  # noqa: S608
        return connection.execute(text, named).fetchone()

    return from_python if request.param == "from Python" else from_sql


def carried(connection):
    """Return the payload that the only run carries."""
    event_id = run_of(connection).event_id
    text = "select data from jobspec.job_event where id = %s"
    return connection.execute(text, [event_id]).fetchone()[0]


def test_a_run_without_options_is_due_at_once(add, connection, clock):
    assert add({"n": 1}) == ("enqueued", run_of(connection).id, clock.now())
    assert carried(connection) == {"n": 1}


def test_calls_without_a_key_make_a_run_each(add, connection):
    assert [add()[0] for _ in range(3)] == ["enqueued"] * 3
    assert count(connection, "job_queue") == 3


def test_a_debounce_puts_off_up_to_its_bound_and_then_begins_anew(add, connection, clock):
    start = clock.now()

    def due_of_a_call_at(seconds):
        clock.set(start + timedelta(seconds=seconds))
        return (add({"at": seconds}, **DEBOUNCE)[2] - start).total_seconds()

    assert [due_of_a_call_at(at) for at in (0, 1, 3, 9)] == [2, 3, 5, 10]
    assert carried(connection) == {"at": 9}
    clock.set(start + BOUND)
    assert [run.run_id for run in claim(connection)] == [run_of(connection).id]
    assert due_of_a_call_at(10) == 12
    assert [run.state for run in runs(connection)] == ["running", "pending"]


def test_a_replacement_takes_payload_time_priority_and_attempts(add, connection, clock):
    add({"n": 1}, job_key="k", delay=timedelta(hours=1))
    outcome, run_id, due = add(
        {"n": 2}, job_key="k", delay=timedelta(minutes=1), priority=-3, max_attempts=9
    )
    run = run_of(connection)
    assert (outcome, run_id, due) == ("coalesced", run.id, clock.now() + timedelta(minutes=1))
    assert (carried(connection), run.priority, run.max_attempts) == ({"n": 2}, -3, 9)
    assert run.events == 2


def test_a_first_call_is_not_put_off_past_its_bound_either(add, connection, clock):
    add(**DEBOUNCE | {"delay": 2 * BOUND})
    assert run_of(connection).run_at == clock.now() + BOUND


def test_a_replacement_ends_the_bound_of_a_debounce(add, connection, clock):
    add(**DEBOUNCE)
    add(job_key="k", delay=timedelta(hours=1))
    assert run_of(connection).run_at == clock.now() + timedelta(hours=1)
    assert run_of(connection).run_by is None


def test_a_preserved_time_stays_and_the_payload_is_replaced(add, connection, clock):
    start = clock.now()
    add({"n": 1}, job_key="k", delay=timedelta(hours=1))
    clock.advance(timedelta(minutes=5))
    add({"n": 2}, job_key="k", job_key_mode="preserve_run_at", delay=timedelta(hours=9))
    assert run_of(connection).run_at == start + timedelta(hours=1)
    assert carried(connection) == {"n": 2}


def test_an_unsafe_dedupe_changes_nothing_but_the_count(add, connection, clock):
    add({"n": 1}, job_key="k", delay=timedelta(hours=1), priority=4, max_attempts=3)
    before = run_of(connection)
    told = add({"n": 2}, job_key="k", job_key_mode="unsafe_dedupe", priority=7, max_attempts=8)
    after = run_of(connection)
    assert told == ("coalesced", before.id, before.run_at)
    assert carried(connection) == {"n": 1}
    assert (after.priority, after.max_attempts, after.run_at) == (4, 3, before.run_at)
    assert (before.events, after.events) == (1, 2)


@pytest.mark.parametrize(
    "options",
    [
        {},
        DEBOUNCE | {"delay": timedelta(0)},
        {"job_key_mode": "preserve_run_at"},
        {"job_key_mode": "unsafe_dedupe"},
    ],
)
def test_a_call_while_the_run_executes_makes_a_new_one(add, connection, options):
    first = add(job_key="k")[1]
    claim(connection)
    outcome, second, _ = add(**{"job_key": "k"} | options)
    assert (outcome, second == first) == ("enqueued", False)


def test_other_keys_and_other_jobs_are_other_runs(dsn, connection):
    with Client(job(), dsn) as client:
        client.add_job("job", job_key="a")
        client.add_job("job", job_key="b")
    with Client(job("other"), dsn) as client:
        client.add_job("other", job_key="a")
    assert count(connection, "job_queue") == 3


def test_racing_calls_with_a_key_all_get_the_one_run(dsn, connection):
    with Client(job(), dsn, max_connections=16) as client:
        for number in range(25):
            key = f"k{number}"
            options = DEBOUNCE | {"job_key": key}
            told = together(*[lambda: client.add_job("job", **options) for _ in range(16)])  # noqa: B023
            assert sorted(one.outcome for one in told) == ["coalesced"] * 15 + ["enqueued"]
            assert len({one.run_id for one in told}) == 1
    assert [run.events for run in runs(connection)] == [16] * 25


def test_a_call_that_waits_for_a_claim_gets_a_run_of_its_own(dsn, connection):
    with Client(job(), dsn) as client, psycopg.connect(dsn) as claiming:
        first = client.add_job("job", job_key="k").run_id
        claim(claiming)
        calls = (
            lambda: client.add_job("job", job_key="k"),
            lambda: until(lambda: _waits(connection)) and claiming.commit(),
        )
        told, _ = together(*calls)
    assert (told.outcome, told.run_id == first) == ("enqueued", False)


def _waits(connection):
    text = "select count(*) from pg_locks where not granted"
    return connection.execute(text).fetchone()[0] > 0


def test_a_debounce_of_the_spec_and_a_job_key_are_one_mechanism(dsn, connection, clock):
    compiled = job(debounce={"key": "event.data.k", "period": "2m", "timeout": "15m"})
    with Client(compiled, dsn) as client:
        sent = client.send("event", {"k": "a"}).jobs[0]
        added = client.add_job("job", {"n": 1}, job_key="a", delay=timedelta(minutes=5))
    assert (added.outcome, added.run_id) == ("coalesced", sent.run_id)
    assert run_of(connection).run_at == clock.now() + timedelta(minutes=5)


def test_an_older_event_joins_an_added_run_that_is_due_later_than_its_bound_and_bounds_nothing(
    dsn, connection, clock
):
    options = {"key": "event.data.key", "period": "2s", "timeout": "10s"}
    with Client(job(debounce=options), dsn) as client:
        client.add_job("job", job_key="k", delay=timedelta(minutes=1))
        (told,) = client.send("event", {"key": "k"}, ts=1).jobs
    assert told.outcome == "coalesced"
    run = run_of(connection)
    assert (run.run_at, run.run_by) == (clock.now() + timedelta(minutes=1), None)


def test_runs_are_claimed_by_priority_then_by_time(client, connection, clock):
    order = [(5, 0), (-5, 0), (0, 1), (0, 0)]
    for priority, seconds in order:
        client.add_job("job", priority=priority, delay=timedelta(seconds=seconds))
    clock.advance(timedelta(minutes=1))
    assert [run.run_id for run in claim(connection)] == [2, 4, 3, 1]


def test_a_key_of_any_length_and_script_works(add, connection):
    key = "😀/日本/" * 20_000
    assert (add(job_key=key)[0], add(job_key=key)[0]) == ("enqueued", "coalesced")


async def test_the_async_client_adds_jobs_as_the_sync_one(dsn, connection):
    async with AsyncClient(job(), dsn) as client:
        first = await client.add_job("job", {"n": 1}, job_key="k", delay=WINDOW)
        second = await client.add_job("job", {"n": 2}, job_key="k", delay=WINDOW)
    assert (first.outcome, second.outcome) == ("enqueued", "coalesced")
    assert (second.run_id, carried(connection)) == (first.run_id, {"n": 2})


def test_a_call_in_a_transaction_that_rolls_back_leaves_nothing(client, dsn, connection):
    with psycopg.connect(dsn) as own:
        client.add_job("job", {"n": 1}, job_key="k", connection=own)
        own.rollback()
    assert (count(connection, "job_queue"), count(connection, "job_event")) == (0, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"run_at": datetime(2026, 1, 1)}, "run_at must be aware"),  # noqa: DTZ001
        ({"run_at": datetime(2026, 1, 1, tzinfo=UTC), "delay": WINDOW}, "not both"),
        ({"delay": -WINDOW}, "must not be negative"),
        ({"job_key_mode": "replace"}, "needs a job_key"),
        ({"job_key": "k", "job_key_mode": "keep"}, "must be one of"),
        ({"job_key": "k", "job_key_mode": "debounce"}, "needs max_debounce"),
        ({"job_key": "k", "max_debounce": BOUND}, "needs max_debounce"),
        (DEBOUNCE | {"max_debounce": timedelta(0)}, "longer than nothing"),
        ({"job_key": "a\0b"}, r"U\+0000"),
        ({"job_key": "\ud800"}, "surrogate"),
        ({"priority": 40_000}, "priority must be from"),
        ({"max_attempts": 0}, "max_attempts must be from"),
    ],
)
def test_what_can_not_be_added_is_refused_and_nothing_is_written(client, connection, options, said):
    with pytest.raises(AddJobError, match=said):
        client.add_job("job", **options)
    assert count(connection, "job_event") == 0


@pytest.mark.parametrize("payload", [[1], "text", {"n": float("nan")}, {1: 2}])
def test_a_payload_that_is_no_json_object_is_refused(client, payload):
    with pytest.raises(AddJobError):
        client.add_job("job", payload)


def test_a_job_that_is_not_compiled_is_refused(client):
    with pytest.raises(AddJobError, match=r"there is no job `jbo` .* did you mean `job`"):
        client.add_job("jbo")


@pytest.mark.parametrize(
    "arguments",
    [
        "null",
        "'job', null",
        "'job', job_key => 'k', job_key_mode => 'debounce'",
        "'job', job_key => 'k', max_debounce => '1s'",
        "'job', job_key => 'k', job_key_mode => 'keep'",
        "'job', job_key_mode => 'debounce', max_debounce => '1s'",
    ],
)
def test_plain_sql_refuses_what_means_nothing(connection, arguments):
    with pytest.raises(psycopg.Error):
        connection.execute(f"select jobspec.add_job({arguments})")
    assert (count(connection, "job_event"), count(connection, "job_queue")) == (0, 0)


@pytest.mark.parametrize(("delay", "told"), [(timedelta(0), ""), (WINDOW, "nothing came before")])
def test_plain_sql_wakes_workers_for_what_is_due(dsn, connection, delay, told):
    with psycopg.connect(dsn, autocommit=True) as listening:
        listening.execute('listen "jobspec.wake"')
        connection.execute("select jobspec.add_job('job', delay => %s)", [delay])
        connection.execute("select pg_notify('jobspec.wake', 'nothing came before')")
        first, *_ = listening.notifies(timeout=PATIENCE, stop_after=1)
    assert first.payload == told
