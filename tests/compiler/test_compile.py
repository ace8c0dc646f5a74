"""`compile()` and `check()`: what they take, and what they give back."""

from __future__ import annotations

import dataclasses
import gc
import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from jobspec import CompileError, EventTrigger, KeyTemplate, Registry, check, compile, spec
from jobspec.load import load
from jobspec.source import Source

compiling = sys.modules["jobspec.compile"]  # `jobspec.compile` is the function

TWO_JOBS = """
jobs:
  - id: email.send
    triggers: [{event: email.send}]
    handler: myapp.jobs:send_email
    idempotency: event.data.idempotencyKey
    retries: 3
  - id: system.code-graph-refresh
    triggers: [{event: github/push}]
    handler: myapp.jobs:refresh
    debounce:
      key: event.data.installationId + '/' + event.data.repoOwner + '/' + event.data.repoName
      period: 2m
      timeout: 15m
"""


def codes(source):
    return [found.code for found in check(source)]


def job(**fields):
    """A spec file with one job that has these fields besides what a job must have."""
    return json.dumps({"jobs": [{"id": "a", "triggers": [{"event": "a"}]} | fields]})


def test_jobs_are_typed_and_in_the_order_they_were_written():
    email, refresh = compile(TWO_JOBS).jobs
    assert email.triggers == (EventTrigger("email.send"),)
    assert email.handler == "myapp.jobs:send_email"
    assert email.name == "email.send"
    assert email.retries == 3
    assert email.idempotency.key == KeyTemplate.parse("event.data.idempotencyKey")
    assert email.debounce is None
    assert refresh.retries == 4
    assert refresh.debounce.period == timedelta(minutes=2)
    assert refresh.debounce.timeout == timedelta(minutes=15)
    event = {"data": {"installationId": 12345678, "repoOwner": "acme", "repoName": "web"}}
    assert refresh.debounce.key.resolve(event).text == "1.2345678e+07/acme/web"


def test_compiled_jobs_are_a_mapping_by_id_and_by_event():
    jobs = compile(TWO_JOBS)
    assert list(jobs) == ["email.send", "system.code-graph-refresh"]
    assert jobs["email.send"] is jobs.jobs[0]
    assert jobs.for_event("github/push") == (jobs["system.code-graph-refresh"],)
    assert jobs.for_event("nothing") == ()


def test_compiled_jobs_are_frozen():
    compiled = compile(TWO_JOBS).jobs[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        compiled.retries = 1


def test_every_option_is_typed():
    compiled = compile(
        job(
            name="A job",
            rateLimit={"limit": 3, "period": "1h", "key": "event.data.a"},
            throttle={"limit": 2, "period": "1m", "burst": 4},
            concurrency=[{"limit": 5}, {"limit": 1, "scope": "env", "key": "'all'"}],
            priority={"run": "event.data.paid ? 120 : 0"},
            singleton={"mode": "cancel"},
            cancelOn=[{"event": "stop", "match": "data.id", "timeout": "1d"}],
            timeouts={"start": "1h", "finish": "2h30m"},
            on_missing="reject",
        )
    )["a"]
    assert compiled.name == "A job"
    assert (compiled.rate_limit.limit, compiled.rate_limit.period) == (3, timedelta(hours=1))
    assert (compiled.throttle.limit, compiled.throttle.burst, compiled.throttle.key) == (2, 4, None)
    assert [(one.limit, one.scope) for one in compiled.concurrency] == [(5, "fn"), (1, "env")]
    assert compiled.priority == "event.data.paid ? 120 : 0"
    assert compiled.singleton.mode == "cancel"
    assert compiled.cancel_on[0].match == "data.id"
    assert compiled.cancel_on[0].timeout == timedelta(days=1)
    assert compiled.timeouts.finish == timedelta(hours=2, minutes=30)
    assert compiled.on_missing == "reject"


def test_batches_are_typed():
    compiled = compile(job(batchEvents={"maxSize": 9, "timeout": "5s", "if": "event.data.a == 1"}))
    batch = compiled["a"].batch_events
    assert (batch.max_size, batch.timeout) == (9, timedelta(seconds=5))
    assert batch.condition == "event.data.a == 1"


def test_concurrency_can_be_a_number():
    assert compile(job(concurrency=7))["a"].concurrency[0].limit == 7


def test_idempotency_can_be_a_key_or_a_mapping_with_one():
    key = "event.data.id"
    assert (
        compile(job(idempotency=key))["a"].idempotency
        == compile(job(idempotency={"key": key}))["a"].idempotency
    )


def test_a_trigger_can_be_the_name_of_an_event_alone():
    assert compile(job(triggers=["b"]))["a"].triggers == (EventTrigger("b"),)


def test_a_cron_trigger_has_a_schedule_a_jitter_and_what_to_do_with_missed_ticks():
    trigger = {"cron": "0 3 * * *", "jitter": "30s", "missed": "once"}
    (compiled,) = compile(job(triggers=[trigger]))["a"].triggers
    assert compiled.schedule.text == "0 3 * * *"
    assert compiled.jitter == timedelta(seconds=30)
    assert compiled.missed == "once"


def test_missed_ticks_are_skipped_where_nothing_else_is_said():
    (compiled,) = compile(job(triggers=[{"cron": "0 3 * * *"}]))["a"].triggers
    assert compiled.missed == "skip"


def test_files_directories_and_several_of_them_are_read_as_one(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "one.yaml").write_text(TWO_JOBS)
    (tmp_path / "two.json").write_text(job())
    assert set(compile(tmp_path)) == {"email.send", "system.code-graph-refresh", "a"}
    assert set(compile(str(tmp_path / "two.json"))) == {"a"}
    assert len(compile([tmp_path / "jobs", tmp_path / "two.json"])) == 3


def test_a_file_named_twice_is_read_once(tmp_path):
    (tmp_path / "one.yaml").write_text(TWO_JOBS)
    assert len(compile([tmp_path, tmp_path / "one.yaml"])) == 2


def test_an_error_holds_every_finding_of_every_file(tmp_path):
    broken = "jobs:\n" + "".join(f"  - id: job-{{n}}-{i}\n    trigers: []\n" for i in range(5))
    for number in range(4):
        (tmp_path / f"{number}.yaml").write_text(broken.replace("{n}", str(number)))
    with pytest.raises(CompileError) as caught:
        compile(tmp_path)
    found = [(one.source.name, one.code) for one in caught.value.diagnostics]
    assert len(found) == 20
    assert found == sorted(found, key=lambda one: one[0])


def test_twenty_faults_in_four_files_are_twenty_findings(tmp_path):
    faulty = (
        "jobs:\n  - id: job-{n}\n    triggers: [{event: e}]\n    handler: nowhere\n"
        "    retries: 50\n    idempotency: event.data.id +\n    debonce: {}\n    throttle: 5\n"
    )
    for number in range(4):
        (tmp_path / f"{number}.yaml").write_text(faulty.replace("{n}", str(number)))
    findings = check(tmp_path)
    assert len(findings) == 20
    assert len({(one.source.name, one.span) for one in findings}) == 20


def test_warnings_do_not_keep_jobs_from_compiling():
    source = job(triggers=[])
    assert codes(source) == ["JS408"]
    assert "a" in compile(source)


def test_no_job_is_an_error_so_that_nothing_passes_in_vain(tmp_path):
    assert codes("jobs: []\n") == ["JS313"]
    (tmp_path / "events.yaml").write_text("events: {}\n")
    assert codes(tmp_path) == ["JS313"]
    assert codes([]) == ["JS313"]


def test_a_directory_without_specs_and_a_missing_file_are_errors(tmp_path):
    assert codes(tmp_path) == ["JS167"]
    assert codes(tmp_path / "nowhere.yaml") == ["JS150"]
    assert codes("nowhere.yaml") == ["JS150"]


def test_files_of_events_alone_are_fine_beside_jobs(tmp_path):
    (tmp_path / "events.yaml").write_text("events: {}\n")
    (tmp_path / "jobs.yaml").write_text(TWO_JOBS)
    assert check(tmp_path) == ()


def test_ids_are_unique_over_all_files(tmp_path):
    (tmp_path / "a.yaml").write_text(job())
    (tmp_path / "b.yaml").write_text(job(triggers=["b"]))
    (found,) = check(tmp_path)
    assert found.code == "JS309"
    assert found.source.name == str(tmp_path / "b.yaml")
    assert [Path(other.source.name).name for other in found.related] == ["a.yaml"]


@pytest.mark.parametrize(
    "text", ["5\n", "- a\n", "jobs: 5\n", "jobs: [5, [], {}]\n", "{}", "events: 5\n"]
)
def test_any_shape_of_a_file_is_findings_and_no_exception(text):
    assert codes(text)


def test_models_compile_like_files():
    declared = spec.Job(
        id="system.code-graph-refresh",
        triggers=[spec.Trigger(event="github/push")],
        handler="myapp.jobs:refresh",
        debounce=spec.Debounce(
            key="event.data.installationId + '/' + event.data.repoOwner"
            " + '/' + event.data.repoName",
            period="2m",
            timeout=timedelta(minutes=15),
        ),
    )
    assert compile(declared).jobs == compile(TWO_JOBS).jobs[1:]


def test_a_registry_compiles_to_its_jobs_with_their_functions():
    jobs = Registry()

    @jobs.job(id="a", triggers=["a"], retries=0)
    def run_a(ctx):
        return ctx

    assert compile(jobs)["a"].handler is run_a
    assert compile(jobs)["a"].retries == 0


def test_a_registry_is_compiled_beside_files_and_other_registries():
    first, second = Registry(), Registry()
    first.job(id="a", triggers=["a"])(print)
    second.job(id="b", triggers=["b"])(print)
    assert list(compile([first, TWO_JOBS, second])) == ["a", *compile(TWO_JOBS), "b"]


@pytest.mark.parametrize("is_on", [True, False])
def test_the_garbage_collector_is_left_as_it_was(is_on, monkeypatch):
    seen = []
    monkeypatch.setattr(
        compiling, "load", lambda source: seen.append(gc.isenabled()) or load(source)
    )
    was_on = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        check(TWO_JOBS)
        left = gc.isenabled()
    finally:
        (gc.enable if was_on else gc.disable)()
    assert (seen, left) == ([False], is_on)


def test_a_message_stays_on_one_line_whatever_it_quotes():
    text = '{"jobs": [{"id": "a", "triggers": ["a"], "x\\ny\\u202e": 1}]}'
    (found,) = check(Source("a.json", text))
    assert found.message == "`xU+000AyU+202E` is not a field here"


@pytest.mark.parametrize("specs", [None, 5, b"jobs: []", [None], [[]], [[Registry()]]])
def test_what_is_no_spec_is_a_type_error_that_says_what_one_is(specs):
    with pytest.raises(TypeError, match=r"a spec is a path, .* a Registry or a list of such, and"):
        check(specs)


@pytest.mark.parametrize("text", ["[]", "null", "jobs", "5"])
def test_a_file_that_is_no_mapping_is_told_in_plain_words(text):
    (found,) = check(Source("a.yaml", text))
    assert found.message.startswith("a spec file is a mapping, and this is ")


def test_the_second_place_of_a_finding_in_a_condition_is_in_the_file():
    text = 'jobs:\n- id: a\n  triggers: [{event: a, if: "event.data.a == (1"}]\n'
    (found,) = check(Source("a.yaml", text))
    (opened,) = found.related
    assert (opened.source.name, text[slice(*opened.span)]) == ("a.yaml", "(")
