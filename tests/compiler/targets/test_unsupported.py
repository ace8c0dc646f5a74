"""Options that a target can't honour are found where they stand, and nowhere dropped in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jobspec
from golden import agrees
from jobspec import check, compile
from jobspec.report import full
from jobspec.targets import TargetError, engine, inngest

KEY = "event.data.id"
LIMIT = {"limit": 1, "period": "1m"}
TICK = {"cron": "5 4 * * *"}

# Each option in words, and fields of a job that has it.
OPTIONS = {
    "`triggers` by event": {},
    "`triggers` by cron, `jitter`": {"triggers": [TICK | {"jitter": "5s"}]},
    "`triggers` of a wildcard, such as `app/*`": {"triggers": ["app/*"]},
    "`triggers` with `if`": {"triggers": [{"event": "a", "if": "event.data.b == 1"}]},
    "`triggers` with `missed`": {"triggers": [TICK | {"missed": "once"}]},
    "`retries`": {"retries": 1},
    "`retry`": {"retry": {"jitter": 0.5}},
    "`idempotency`": {"idempotency": KEY},
    "`idempotency.window` of `24h`": {"idempotency": {"key": KEY, "window": "24h"}},
    "`idempotency.window` of another length, or `while-active`": {
        "idempotency": {"key": KEY, "window": "2h"}
    },
    "`debounce`": {"debounce": {"key": KEY, "period": "1m", "timeout": "5m"}},
    "`rateLimit`": {"rateLimit": LIMIT},
    "`throttle`": {"throttle": LIMIT},
    "`concurrency`": {"concurrency": 5},
    "`priority`": {"priority": {"run": "100"}},
    "`batchEvents`": {"batchEvents": {"maxSize": 5, "timeout": "5s"}},
    "`singleton`": {"singleton": {"mode": "skip"}},
    "`cancelOn`": {"cancelOn": [{"event": "b", "match": "data.id"}]},
    "`timeouts.start`, `timeouts.finish`": {"timeouts": {"start": "5s", "finish": "1m"}},
    "`timeouts.attempt`": {"timeouts": {"attempt": "5s"}},
    "`on_missing: reject`": {"on_missing": "reject"},
}


def spec(**fields):
    return json.dumps({"jobs": [{"id": "a", "triggers": ["a"]} | fields]})


def found(target, **fields):
    """What is wrong with a job for a target: pairs of the text it is at and the message."""
    findings = check(spec(**fields), target=target)
    assert {one.code for one in findings} <= {"JS411"}
    return [(one.source.text[slice(*one.span)], one.message) for one in findings]


@pytest.mark.parametrize("fields", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(("target", "module"), [("engine", engine), ("inngest", inngest)])
def test_a_check_finds_what_a_target_refuses_and_nothing_else(target, module, fields):
    jobs = compile(spec(**fields))
    try:
        module.render(jobs)
    except TargetError:
        assert len(found(target, **fields)) == 1
    else:
        assert found(target, **fields) == []


@pytest.mark.parametrize(
    ("target", "fields", "expected"),
    [
        ("engine", {"concurrency": 5}, ('"concurrency"', "the engine can't honour `concurrency`")),
        (
            "engine",
            {"triggers": ["b", {"event": "a", "if": "event.data.b == 1"}]},
            ('"if"', "the engine can't honour `triggers[1].if`"),
        ),
        (
            "engine",
            {"triggers": ["a/*"]},
            ('"a/*"', "the engine can't honour the wildcard `a/*` in `triggers[0].event`"),
        ),
        (
            "engine",
            {"triggers": [{"event": "a/*"}]},
            ('"a/*"', "the engine can't honour the wildcard `a/*` in `triggers[0].event`"),
        ),
        (
            "inngest",
            {"idempotency": {"key": KEY, "window": "2h"}},
            ('"window"', "Inngest can't honour `idempotency.window`"),
        ),
        ("inngest", {"retry": {"jitter": 0.5}}, ('"retry"', "Inngest can't honour `retry`")),
    ],
)
def test_an_option_is_found_where_it_stands(target, fields, expected):
    assert found(target, **fields) == [expected]


def test_an_option_beside_a_trigger_that_can_not_be_read_is_found_at_the_triggers():
    findings = check(spec(triggers=[5, {"event": "a", "if": "true"}]), target="engine")
    (one,) = (one for one in findings if one.code == "JS411")
    assert one.source.text[slice(*one.span)] == '"triggers"'


def test_an_option_that_only_the_settings_have_is_found_at_the_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = '[tool.jobspec]\non_missing = "reject"\ntarget = "inngest"\n'
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    assert found(None) == [('"a"', "Inngest can't honour `on_missing`")]
    assert found("engine") == []


def test_a_check_without_a_target_is_for_all_of_them():
    assert check(spec(concurrency=5, on_missing="reject")) == ()


def test_what_is_silenced_for_a_target_is_no_unused_comment_without_one(tmp_path):
    text = (
        "jobs:\n- id: a\n  triggers: [a]\n  # jobspec: ignore[JS411] on Inngest\n  concurrency: 5\n"
    )
    assert check(text) == check(text, target="engine") == ()
    assert [one.code for one in check(text, target="inngest")] == ["JS442"]


def test_the_report_says_what_to_do():
    text = (
        "jobs:\n"
        "  - id: email.send\n"
        "    triggers:\n"
        "      - event: email/*\n"
        "        if: event.data.paid\n"
        "    throttle: {limit: 5, period: 1m}\n"
    )
    golden = Path(__file__).parent / "golden" / "option-not-for-target.txt"
    assert agrees(full.render(check(text, target="engine"), ["<text>"]), golden)


def test_jobs_are_refused_with_advice():
    jobs = compile(spec(concurrency=5))
    with pytest.raises(TargetError) as caught:
        jobspec.require_supported(jobs.values(), "engine")
    assert str(caught.value) == (
        "the engine can't honour `concurrency` of job `a`: remove it, or run this job on Inngest"
    )
