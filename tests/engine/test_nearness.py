"""What is said of a name that nothing goes by."""

from __future__ import annotations

from jobspec_engine.nearness import did_you_mean, near_or_listed


def test_the_nearest_name_is_meant_whatever_its_case():
    assert did_you_mean("EMAIL.SNED", ["email.send", "pay"]) == "did you mean `email.send`?"
    assert did_you_mean("x", ["email.send", "pay"]) is None


def test_without_a_near_name_the_first_of_them_are_listed_in_their_order():
    names = [f"job-{number}" for number in range(9, 0, -1)]
    assert near_or_listed("x", names[:2]) == "there are `job-8`, `job-9`"
    assert near_or_listed("x", names) == (
        "there are `job-1`, `job-2`, `job-3`, `job-4`, `job-5` and 4 more"
    )
    assert near_or_listed("x", []) == "there is none"
