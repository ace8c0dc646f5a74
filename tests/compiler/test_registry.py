"""Jobs declared in Python: wrong ones raise where they are declared."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from jobspec import CompileError, Registry, compile, spec
from jobspec.report import full


def declaring(**options):
    """The findings that declaring a job raises."""
    with pytest.raises(CompileError) as caught:
        Registry().job(**{"id": "a", "triggers": ["a"]} | options)
    return caught.value.diagnostics


def test_a_key_that_can_not_be_resolved_raises_at_the_declaration():
    (found,) = declaring(idempotency="event.data.a + lower(event.data.b)")
    shown = full.render([found], []).splitlines()
    here = declaring.__code__.co_firstlineno + 3
    assert found.source.name == f'{_shown(__file__)}:{here} job "a"'
    assert shown[3].index("lower") == shown[4].index("^")


def test_a_caret_stands_in_a_key_with_characters_that_are_escaped():
    (found,) = declaring(debounce={"key": "'\"\\\\' + event.name", "period": "2m"})
    assert found.source.text[found.span.start :].startswith("event.name")


def test_all_problems_of_a_declaration_are_raised_at_once():
    found = declaring(retries=99, debounce={"perod": "2m"}, on_missing="fail")
    assert sorted(one.code for one in found) == ["JS301", "JS304", "JS305"]


def test_nothing_is_registered_by_a_declaration_that_raised():
    jobs = Registry()
    with pytest.raises(CompileError):
        jobs.job(id="a", triggers=["a"], idempotency="")
    assert list(jobs) == []


def test_an_id_can_be_registered_once():
    jobs = Registry()
    jobs.job(id="a", triggers=["a"])(print)
    with pytest.raises(CompileError, match="`a` is used twice"):
        jobs.job(id="a", triggers=["b"])


def test_the_decorated_function_stays_as_it_is():
    assert Registry().job(id="a", triggers=["a"])(print) is print


def test_options_are_classes_dicts_and_timedeltas():
    period = timedelta(minutes=2)
    written = (
        spec.Debounce(period="2m", key="event.data.a"),
        {"period": period, "key": "event.data.a"},
        spec.Debounce(period=period, key="event.data.a"),
    )
    jobs = Registry()
    for number, debounce in enumerate(written):
        jobs.job(id=f"job-{number}", triggers=[f"e{number}"], debounce=debounce)(print)
    assert len({job.debounce for job in compile(jobs).values()}) == 1


def test_a_window_is_a_word_or_a_timedelta():
    jobs = Registry()
    for number, window in enumerate(("while-active", timedelta(hours=1))):
        key = spec.Idempotency(key="event.data.a", window=window)
        jobs.job(id=f"job-{number}", triggers=[f"e{number}"], idempotency=key)(print)
    windows = [job.idempotency.window for job in compile(jobs).values()]
    assert windows == ["while-active", timedelta(hours=1)]


def test_options_are_named_as_python_names_them():
    jobs = Registry()
    jobs.job(
        id="a",
        triggers=[spec.Trigger(event="a", if_="event.data.a == 1")],
        cancel_on=[{"event": "b", "if_": "event.data.a == async.data.a"}],
        rate_limit={"limit": 1, "period": "1h"},
    )(print)
    job = compile(jobs)["a"]
    assert job.triggers[0].condition == "event.data.a == 1"
    assert job.cancel_on[0].condition == "event.data.a == async.data.a"
    assert job.rate_limit.limit == 1


def _shown(file):
    return Path(file).relative_to(Path.cwd()) if Path(file).is_relative_to(Path.cwd()) else file


def test_an_error_names_the_place_of_the_declaration_and_what_to_write():
    line = sys._getframe().f_lineno + 2
    with pytest.raises(CompileError) as caught:
        Registry().job(id="a", triggers=["a"], idempotency="event.data.a + ")
    first, second = str(caught.value).splitlines()
    assert first.startswith(f'{_shown(__file__)}:{line} job "a": error[JS106]: ')
    assert second.startswith("  help: ")


def test_a_place_below_the_working_directory_is_told_from_there(monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)
    (found,) = declaring(idempotency="")
    assert found.source.name.startswith("test_registry.py:")


def test_a_job_that_no_decorator_declared_is_named_by_its_id():
    with pytest.raises(CompileError, match=r'^job "a": error'):
        compile(spec.Job(id="a", triggers=["a"], idempotency=""))


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("debonce", "did you mean `debounce`?"),
        ("rateLimit", "did you mean `rate_limit`?"),
        ("cancel", "did you mean `cancel_on`?"),
        ("handler", "it has `id`, `triggers`"),
        ("declared_at", "it has `id`, `triggers`"),
        ("zzz", "it has `id`, `triggers`"),
    ],
)
def test_an_option_that_does_not_exist_is_a_type_error_with_advice(option, advice):
    with pytest.raises(TypeError) as caught:
        Registry().job(id="a", triggers=["a"], **{option: {}})
    assert str(caught.value).startswith(f"`{option}` is not a field of a job: {advice}")


def test_an_option_that_is_missing_is_a_type_error_that_names_it():
    with pytest.raises(TypeError, match=r"^a job needs `triggers`$"):
        Registry().job(id="a")
    with pytest.raises(TypeError, match=r"^a job needs `id` and `triggers`$"):
        Registry().job()


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: spec.Debounce(perod="2m"), "`perod` is not a field of `Debounce`: did you mean"),
        (lambda: spec.Trigger(if_="x", evnt="a"), "`evnt` is not a field of `Trigger`: did you"),
        (lambda: spec.BatchEvents(maxSize=5), "`maxSize` is not a field of `BatchEvents`: did you"),
        (lambda: spec.Singleton(zzz=1), "`zzz` is not a field of `Singleton`: it has `mode` and"),
        (lambda: spec.Debounce(key="event.data.a"), "`Debounce` needs `period`"),
        (lambda: spec.Job(id="a"), "`Job` needs `triggers`"),
        (lambda: spec.Debounce("2m"), "the fields of `Debounce` are given by their names"),
    ],
)
def test_an_argument_of_a_class_of_specs_that_does_not_fit_is_told_with_help(declare, message):
    with pytest.raises(TypeError) as caught:
        declare()
    assert str(caught.value).startswith(message)


def test_the_classes_of_specs_show_their_fields():
    assert list(inspect.signature(spec.Singleton).parameters) == ["mode", "key"]


def test_a_value_that_no_spec_can_hold_is_a_type_error():
    with pytest.raises(TypeError, match="type date"):
        Registry().job(id="a", triggers=["a"], name=date(2026, 1, 1))


def test_the_decorator_takes_every_option_of_a_job_but_the_handler():
    options = set(spec.JobOptions.__annotations__)
    assert options == {field.name for field in dataclasses.fields(spec.Job)} - {
        "handler",
        "declared_at",
    }


def test_a_function_in_place_of_an_option_is_refused_and_not_left_out():
    with pytest.raises(TypeError, match="can't hold a value of the type function"):
        Registry().job(id="a", triggers=["a"], idempotency=lambda event: event["id"])


@pytest.mark.parametrize("name", ["a: b", "*a", "", "a\n- b", 5])
def test_a_name_of_a_field_never_becomes_anything_else(name):
    (found,) = declaring(debounce={"period": "2m", name: 1})
    assert found.code == "JS301"


def test_only_what_can_be_called_is_registered():
    jobs = Registry()
    with pytest.raises(TypeError, match="a handler is a function, and this is of type int"):
        jobs.job(id="a", triggers=["a"])(5)
    assert list(jobs) == []


def test_a_decorator_that_is_used_twice_raises_where_it_is_used():
    jobs = Registry()
    twice = jobs.job(id="a", triggers=["a"])
    twice(print)
    with pytest.raises(CompileError, match="JS309"):
        twice(repr)
    assert [job.handler for job in jobs] == [print]


def itself():
    value = {}
    value["key"] = value
    return value


@pytest.mark.parametrize("option", [{"debounce": itself()}, {"retries": 10**5000}])
def test_what_no_file_can_hold_is_a_type_error(option):
    with pytest.raises(TypeError, match="a spec can't hold"):
        Registry().job(id="a", triggers=["a"], **option)
