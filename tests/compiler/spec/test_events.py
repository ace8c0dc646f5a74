"""Events that specs declare, and what their schemas say about the keys and conditions of jobs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobspec import Registry, check, compile
from jobspec.cli import main

TEXT = {"type": "string"}
PUSH = {"type": "object", "required": ["owner"], "properties": {"owner": TEXT, "branch": TEXT}}
DEBOUNCE = {"key": "event.data.owner", "period": "2m"}


def spec(events=None, **fields):
    """A spec with one job, triggered by `push`, and these events."""
    job = {"id": "a", "triggers": [{"event": "push"}], **fields}
    return json.dumps({"events": {"push": {"schema": PUSH}, **(events or {})}, "jobs": [job]})


def debounced(key, events=None, **fields):
    return spec(events, debounce={"key": key, "period": "2m"}, **fields)


def codes(source, **options):
    return [found.code for found in check(source, **options)]


def shown(source):
    return [found.source.text[slice(*found.span)] for found in check(source)]


@pytest.mark.parametrize(
    "option",
    [
        {"idempotency": "event.data.x"},
        {"idempotency": {"key": "event.data.x"}},
        {"debounce": {"key": "event.data.x", "period": "2m"}},
        {"rateLimit": {"key": "event.data.x", "period": "2m", "limit": 1}},
        {"throttle": {"key": "event.data.x", "period": "2m", "limit": 1}},
        {"concurrency": {"key": "event.data.x", "limit": 1}},
        {"concurrency": [{"limit": 1}, {"key": "event.data.x", "limit": 1}]},
        {"batchEvents": {"key": "event.data.x", "maxSize": 2, "timeout": "5s"}},
        {"singleton": {"key": "event.data.x", "mode": "skip"}},
        {"triggers": [{"event": "push", "if": "event.data.x == 'x'"}]},
        {"priority": {"run": "event.data.x ? 1 : 0"}},
        {"batchEvents": {"if": "event.data.x == 'x'", "maxSize": 2, "timeout": "5s"}},
        {"cancelOn": [{"event": "push", "if": "event.data.x == async.data.owner"}]},
        {"cancelOn": [{"event": "push", "if": "event.data.owner == async.data.x"}]},
        {"cancelOn": [{"event": "push", "match": "data.x"}]},
    ],
    ids=str,
)
def test_every_key_and_condition_is_held_to_the_schema(option):
    (found,) = check(spec(**option))
    assert found.code == "JS203"
    assert found.message.startswith("`event.data.x` is not a field of event `push`")


def test_the_key_of_an_option_that_is_broken_otherwise_is_looked_at_too():
    assert set(codes(spec(debounce={"key": "event.data.x"}))) == {"JS203", "JS302"}


def test_a_key_that_can_not_be_read_is_told_of_once():
    assert codes(debounced("event.data.")) == ["JS122"]


def test_a_caret_stands_in_the_text_that_a_person_edits():
    assert shown(debounced("'\t' + event.data.x")) == ["event.data.x"]


def test_a_key_is_held_to_each_event_and_a_fault_told_once():
    events = {"pull": {"schema": {"properties": {"owner": TEXT}}}}
    triggers = [{"event": "push"}, {"event": "pull"}]
    (found,) = check(debounced("event.data.owner", events, triggers=triggers))
    assert (found.code, "`pull`" in found.message) == ("JS205", True)
    assert codes(debounced("event.data.x", events, triggers=triggers)) == ["JS203"]


def test_an_event_without_a_schema_leaves_the_joints_to_look_at():
    uuid = {"type": "string", "format": "uuid"}
    typed = {"push": {"schema": {"properties": {"x": uuid, "y": uuid}, "required": ["x", "y"]}}}
    key = "event.data.x + event.data.y"
    assert codes(debounced(key, typed)) == []
    both = {**typed, "pull": None}
    assert codes(debounced(key, both, triggers=["push", "pull"])) == ["JS430"]


def test_a_condition_is_held_to_the_event_of_its_own_trigger():
    events = {"pull": {"schema": {"properties": {"number": TEXT}}}}
    triggers = [
        {"event": "push", "if": "event.data.owner == 'x'"},
        {"event": "pull", "if": "event.data.owner == 'x'"},
    ]
    (found,) = check(spec(events, triggers=triggers))
    assert "`pull`" in found.message


def test_a_job_that_rejects_incomplete_events_may_read_optional_fields():
    key = "event.data.owner + '/' + event.data.branch"
    assert codes(debounced(key)) == ["JS205"]
    assert codes(debounced(key, on_missing="reject")) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("push", []),
        ("pusch", ["JS201"]),
        ("inngest/function.failed", []),
        ("pu*", []),
    ],
)
def test_an_event_that_is_not_declared_is_told_of_where_others_are(name, expected):
    assert codes(spec(triggers=[{"event": name}])) == expected
    assert codes(spec(cancelOn=[{"event": name, "match": "data.owner"}])) == expected


def test_where_no_event_is_declared_any_name_goes():
    assert codes(json.dumps({"jobs": [{"id": "a", "triggers": ["x"]}]})) == []


def test_events_and_jobs_may_stand_in_different_files(tmp_path):
    (tmp_path / "events.yaml").write_text(json.dumps({"events": {"push": {"schema": PUSH}}}))
    (tmp_path / "jobs.yaml").write_text(
        "jobs:\n  - id: a\n    triggers: [push]\n    idempotency: event.data.ownr\n"
    )
    assert codes(tmp_path) == ["JS203"]


def test_events_of_a_file_hold_for_jobs_declared_in_python(tmp_path):
    (tmp_path / "events.yaml").write_text(json.dumps({"events": {"push": {"schema": PUSH}}}))
    jobs = Registry()
    jobs.job(id="a", triggers=["push"], idempotency="event.data.ownr")(print)
    assert codes([tmp_path / "events.yaml", *jobs]) == ["JS203"]


@pytest.mark.parametrize("name", ["push.schema.json", "push.schema.yaml", "push.yml"])
def test_a_schema_may_be_a_file_beside_the_spec(tmp_path, monkeypatch, name):
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / name).write_text(json.dumps(PUSH))
    (tmp_path / "specs" / "jobs.yaml").write_text(
        debounced("event.data.x", {"push": {"schema": f"./{name}"}})
    )
    monkeypatch.chdir(tmp_path)
    assert codes("specs") == ["JS203"]
    assert codes("specs/jobs.yaml") == ["JS203"]


def test_what_is_wrong_with_a_schema_file_is_told_there_and_once(tmp_path):
    (tmp_path / "push.json").write_text('{"type": "object", }')
    events = {"push": {"schema": "push.json"}, "pull": {"schema": "push.json"}}
    (tmp_path / "jobs.json").write_text(spec(events))
    (found,) = check(tmp_path)
    assert (found.code, found.source.name) == ("JS158", str(tmp_path / "push.json"))


@pytest.mark.parametrize(
    ("schema", "code", "text"),
    [
        ("nowhere.json", "JS150", '"nowhere.json"'),
        ("somewhere", "JS202", '"somewhere"'),
        ("", "JS202", '""'),
        (5, "JS303", "5"),
        ([], "JS303", "[]"),
        ({"type": "sting"}, "JS202", '"sting"'),
        ({"propertes": {}}, "JS202", '"propertes"'),
        ({"properties": {"a": {"anyOf": [{}, 5]}}}, "JS202", "5"),
    ],
)
def test_a_bad_schema_is_told_of_at_its_place(schema, code, text):
    source = spec({"push": {"schema": schema}})
    assert (codes(source), shown(source)) == ([code], [text])


@pytest.mark.parametrize("event", [None, {}])
def test_an_event_may_be_declared_by_its_name_alone(event):
    assert codes(spec({"push": event})) == []


@pytest.mark.parametrize("event", [5, "x", [], {"schem": {}}, {"schema": None}])
def test_an_event_is_a_mapping_with_a_schema(event):
    assert codes(spec({"push": event}))[0] in ("JS301", "JS303")


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "the_module.py").write_text(
        "from pydantic import BaseModel\n\n"
        "class Push(BaseModel):\n    owner: str\n\n"
        "def handle(context): ...\n\nVALUE = 5\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "the_module", raising=False)
    yield
    sys.modules.pop("the_module", None)


@pytest.mark.usefixtures("module")
def test_a_model_is_imported_only_where_the_check_may_import():
    source = debounced("event.data.x", {"push": {"schema": "the_module:Push"}})
    assert codes(source) == []
    assert codes(source, import_=True) == ["JS203"]
    assert "a" in compile(source)


@pytest.mark.usefixtures("module")
def test_the_command_imports_only_where_it_is_told_to(tmp_path):
    source = debounced("event.data.x", {"push": {"schema": "the_module:Push"}})
    (tmp_path / "jobs.json").write_text(source)
    assert CliRunner().invoke(main, ["check", "jobs.json"]).exit_code == 0
    importing = CliRunner().invoke(main, ["check", "--import", "jobs.json"])
    assert (importing.exit_code, "JS203" in importing.output) == (1, True)


@pytest.mark.usefixtures("module")
def test_a_model_that_can_not_be_imported_is_told_of():
    source = spec({"push": {"schema": "the_module:Pusch"}})
    assert codes(source) == []
    assert codes(source, import_=True) == ["JS202"]


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        ("the_module:handle", []),
        ("the_module:handel", ["JS317"]),
        ("nowhere:handle", ["JS317"]),
        ("the_module:VALUE", ["JS317"]),
    ],
)
def test_a_handler_is_looked_for_only_where_the_check_may_import(handler, expected):
    assert codes(spec(handler=handler)) == []
    assert codes(spec(handler=handler), import_=True) == expected


def test_an_event_declared_in_two_files_is_told_of_with_the_first(tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps({"events": {"push": None}, "jobs": []}))
    (tmp_path / "c.json").write_text(json.dumps({"jobs": [{"id": "a", "triggers": ["push"]}]}))
    (found,) = check(tmp_path)
    assert (found.code, found.source.name) == ("JS214", str(tmp_path / "b.json"))
    assert [one.source.name for one in found.related] == [str(tmp_path / "a.json")]


DOCUMENTED = Path(__file__).parents[3] / "docs" / "events.md"


def test_the_documented_comments_silence_what_they_say():
    blocks = re.findall(r"```yaml\n(.*?)```", DOCUMENTED.read_text(encoding="utf-8"), re.DOTALL)
    (silenced,) = [block for block in blocks if "ignore[" in block]
    schema = {"properties": {"number": {"type": "integer"}, "a": TEXT, "b": TEXT, "c": TEXT}}
    schema["required"] = list(schema["properties"])
    events = "events: " + json.dumps({"release/created": {"schema": schema}}) + "\n"
    spoken = re.sub(r"#.*", "", silenced)
    assert codes(f"{events}jobs:\n{silenced}") == []
    assert sorted(codes(f"{events}jobs:\n{spoken}")) == ["JS207", "JS430", "JS433"]


def test_the_documented_events_are_fine(tmp_path, monkeypatch):
    (block, *_) = re.findall(r"```yaml\n(.*?)```", DOCUMENTED.read_text("utf-8"), re.DOTALL)
    (tmp_path / "push.schema.json").write_text(json.dumps(PUSH))
    (tmp_path / "events.yaml").write_text(block)
    (tmp_path / "jobs.yaml").write_text("jobs: [{id: a, triggers: [github/push]}]\n")
    monkeypatch.chdir(tmp_path)
    assert codes(".") == []
