"""What jobs must not have in common."""

from __future__ import annotations

import json

from jobspec import check


def findings(*jobs):
    return [(one.code, one.message) for one in check(json.dumps({"jobs": list(jobs)}))]


def job(id_, event="e", key="event.data.id", **fields):
    return {"id": id_, "triggers": [{"event": event}], "idempotency": key} | fields


def test_two_jobs_with_the_same_trigger_and_key_look_like_a_copy():
    assert findings(job("a"), job("b")) == [("JS406", "`b` has the same triggers and keys as `a`")]


def test_a_key_that_only_looks_different_is_the_same():
    assert [code for code, _ in findings(job("a"), job("b", key=" event . data.id"))] == ["JS406"]


def test_jobs_that_differ_in_trigger_or_key_are_no_copies():
    assert findings(job("a"), job("b", event="f"), job("c", key="event.data.other")) == []


def test_jobs_that_differ_in_the_option_of_the_key_are_no_copies():
    debounced = {"idempotency": None, "debounce": {"period": "2m", "key": "event.data.id"}}
    other = {name: value for name, value in (job("b") | debounced).items() if value is not None}
    assert findings(job("a"), other) == []


def test_jobs_without_keys_may_share_their_triggers():
    plain = [{"id": name, "triggers": [{"event": "e"}]} for name in "ab"]
    assert findings(*plain) == []


def test_a_job_with_the_same_id_is_not_called_a_copy_as_well():
    assert [code for code, _ in findings(job("a"), job("a"))] == ["JS309"]


def test_jobs_whose_triggers_are_broken_are_no_copies():
    broken = [job(name) | {"triggers": 5} for name in "ab"]
    assert [code for code, _ in findings(*broken)] == ["JS303", "JS303"]


def test_a_third_job_with_an_id_points_at_the_first():
    found = check(json.dumps({"jobs": [job("a", event=name) for name in "xyz"]}))
    assert [one.code for one in found] == ["JS309", "JS309"]
    assert len({one.related[0].span for one in found}) == 1
