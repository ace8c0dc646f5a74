"""The demo: what it says is what happened, and nothing of it stays."""

from __future__ import annotations

import re

import psycopg

from databases import together
from jobspec_engine.demo.play import play
from jobspec_engine.demo.show import show


def outcomes(played):
    return {(told.job_id, told.outcome): count for told, count in played.outcomes}


def schemas(dsn):
    with psycopg.connect(dsn) as connection:
        rows = connection.execute("select nspname from pg_namespace where nspname like 'jobspec%'")
        return {name for (name,) in rows}


def test_each_event_of_the_demo_is_accounted_for(empty_dsn):
    played = play(empty_dsn)
    assert outcomes(played) == {
        ("email.send", "enqueued"): 1,
        ("email.send", "duplicate"): 1,
        ("system.code-graph-refresh", "enqueued"): 1,
        ("system.code-graph-refresh", "coalesced"): 49,
    }


def test_two_runs_complete_and_the_burst_carries_its_last_push(empty_dsn):
    email, burst = play(empty_dsn).runs
    assert (email.state, email.events, email.result) == (
        "completed",
        1,
        '"sent to ada@example.com"',
    )
    assert (burst.state, burst.events, burst.result) == (
        "completed",
        50,
        '"refreshed acme/web at push 50"',
    )


def test_the_demo_leaves_nothing_behind(empty_dsn):
    play(empty_dsn)
    assert schemas(empty_dsn) == set()


def test_the_demo_leaves_an_engine_in_the_same_database_alone(dsn, connection):
    play(dsn)
    assert schemas(dsn) == {"jobspec"}
    assert connection.execute("select count(*) from jobspec.job_queue").fetchone() == (0,)


def test_what_an_interrupted_demo_left_is_cleared_away(empty_dsn):
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("create schema jobspec_demo create table leftover ()")
    assert len(play(empty_dsn).runs) == 2
    assert schemas(empty_dsn) == set()


def test_two_demos_at_once_do_not_get_in_each_others_way(empty_dsn):
    first, second = together(lambda: play(empty_dsn), lambda: play(empty_dsn))
    assert outcomes(first) == outcomes(second)
    assert [run.events for run in first.runs] == [run.events for run in second.runs] == [1, 50]


def test_what_the_demo_prints_fits_a_small_terminal_and_reads_as_a_table(empty_dsn, capsys):
    show(empty_dsn)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    told = [re.sub(r" +\d+  (?=first|joined|key)", "  #  ", line) for line in lines]
    assert told[4:8] == [
        "job                        events  outcome    run  why",
        "email.send                      1  enqueued  #  first with its key",
        "email.send                      1  duplicate  #  key used before",
        "system.code-graph-refresh       1  enqueued  #  first of a burst",
    ]
    assert told[8] == "system.code-graph-refresh      49  coalesced  #  joined the waiting run"
    assert lines[-1].endswith("completed      50  refreshed acme/web at push 50") or lines[
        -1
    ].endswith("completed       1  sent to ada@example.com")
