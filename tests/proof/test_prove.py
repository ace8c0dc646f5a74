"""The table that `make proof` prints."""

from __future__ import annotations

from proof.prove import table
from proof.report import Row


def test_the_table_has_a_line_for_each_kind_of_attack_on_each_server():
    rows = [
        Row("crash points: send", cases=3, lost=1),
        Row("crash points: claim", cases=4, stuck=2),
        Row("chaos", cases=1000, doubled=5, longest_recovery=5.04),
    ]
    assert table({"18": rows, "15": rows[2:]}) == [
        "attack        Postgres  cases  lost  doubled  stuck  longest recovery",
        "crash points  18        7      1     0        2",
        "chaos         18        1000   0     5        0      5.0 s",
        "chaos         15        1000   0     5        0      5.0 s",
    ]
