"""Every condition that the reference was asked to register: the same verdict, and its warning."""

from __future__ import annotations

from jobspec.cel import check_condition, check_expression
from vectors import rows


def recorded():
    """The rows that the reference accepts: it was asked for the results of all."""
    return [row for row in rows("conditions") if row["valid"]]


def once_each():
    """The rows by expression: what the reference accepts does not depend on the event."""
    return {row["expr"]: row for row in rows("conditions")}.values()


def test_a_condition_is_accepted_exactly_where_the_reference_accepts_it():
    assert len(rows("conditions")) == 8000
    wrong = [
        (row["expr"], found, row["message"])
        for row in once_each()
        for found in [check_expression(row["expr"])]
        if (not found) is not row["valid"]
    ]
    assert wrong == []


def test_no_condition_that_ever_held_is_said_never_to_hold():
    held = {row["expr"] for row in recorded() if row["bool"]}
    assert len(held) > 500
    assert [expr for expr in held if check_condition(expr)] == []


def test_no_priority_that_was_ever_a_number_is_said_never_to_be_one():
    kinds = ("int64", "uint64", "float64")
    numbers = {row["expr"] for row in recorded() if row.get("type") in kinds}
    assert len(numbers) > 200
    assert [expr for expr in numbers if check_condition(expr, "number")] == []


def test_the_same_rows_say_the_same_of_one_expression():
    verdicts = {}
    for row in rows("conditions"):
        verdicts.setdefault(row["expr"], set()).add(row["valid"])
    assert all(len(valid) == 1 for valid in verdicts.values())
