"""Python modules as specs: the registries in them."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from jobspec import check, compile

FAILS = "but importing it fails"
JOBS = """
import jobspec

registry = jobspec.Registry()

@registry.job(id="email.send", triggers=["email.send"], idempotency="event.data.key")
def send_email(context): ...
"""


@pytest.fixture(autouse=True)
def _app(tmp_path, monkeypatch):
    """A package in the working directory, which is forgotten after the test."""
    monkeypatch.chdir(tmp_path)
    app = tmp_path / "shop_app"
    app.mkdir()
    modules = {
        "__init__": "",
        "jobs": JOBS,
        "more": "from shop_app.jobs import registry",
        "empty": "",
        "failing": "1 / 0",
        "lacking": "import lacked",
        "broken": JOBS.replace("event.data.key", "event.name"),
    }
    for name, text in modules.items():
        (app / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop_app"]:
        del sys.modules[name]


def said(spec):
    return [(found.code, found.message) for found in check(spec)]


@pytest.mark.parametrize("spec", ["shop_app.jobs", "shop_app.jobs:registry", "shop_app.more"])
def test_a_module_stands_for_the_registries_in_it(spec):
    job = compile(spec)["email.send"]
    assert callable(job.handler)
    assert job.handler.__name__ == "send_email"


def test_a_registry_that_two_modules_have_counts_once():
    assert list(compile(["shop_app.jobs", "shop_app.more"])) == ["email.send"]


def test_modules_and_files_go_together(tmp_path):
    (tmp_path / "b.yaml").write_text("jobs: [{id: b, triggers: [b]}]", encoding="utf-8")
    assert set(compile(["shop_app.jobs", "b.yaml"])) == {"b", "email.send"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("shop_app.nothing", "there is no module `shop_app.nothing`"),
        ("shop_app.jobs:nothing", "`shop_app.jobs` has no `nothing`"),
        ("shop_app.empty", "`shop_app.empty` holds no registry of jobs"),
        ("shop_app.jobs:send_email", "`shop_app.jobs:send_email` holds no registry of jobs"),
        (
            "shop_app.failing",
            f"`shop_app.failing` was found, {FAILS}: ZeroDivisionError: division by zero",
        ),
        ("nowhere.jobs", "there is no module `nowhere`"),
        (
            "shop_app.lacking",
            f"`shop_app.lacking` was found, {FAILS}: ModuleNotFoundError: No module named 'lacked'",
        ),
    ],
)
def test_a_module_that_can_not_be_read_is_a_finding(spec, message):
    assert said(spec) == [("JS168", message)]


def test_a_wrong_declaration_in_a_module_is_shown_where_it_is_wrong():
    (found,) = check("shop_app.broken")
    assert (found.code, found.source.name) == ("JS107", 'shop_app/broken.py:6 job "email.send"')
    (file, line, _) = found.source.place(found.span)
    assert (file, line) == ("shop_app/broken.py", (6, 1))


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("shop_app/jobs.py", "shop_app.jobs"),
        ("./shop_app/jobs.py", "shop_app.jobs"),
        ("shop_app/__init__.py", "shop_app"),
        ("../jobs.py", "myapp.jobs"),
        ("nowhere.py", "nowhere"),
    ],
)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_python_file_is_named_as_a_module(spec, name, kind):
    (found,) = check(kind(spec))
    assert found.code == "JS168"
    assert found.message == f"`{kind(spec)}` is Python, and not a spec file"
    assert found.help == f"name the module as Python imports it, such as `{name}`"


def test_a_path_that_exists_goes_before_a_module(tmp_path):
    (tmp_path / "shop_app.jobs").write_text("jobs: [{id: b, triggers: [b]}]", encoding="utf-8")
    assert list(compile("shop_app.jobs")) == ["b"]


@pytest.mark.parametrize("spec", ["jobs.yaml", "nowhere", "nowhere/jobs", "__main__"])
def test_a_file_that_is_missing_is_no_module(spec):
    assert [code for code, _ in said(spec)] == ["JS150"]


def test_the_search_path_is_as_it_was():
    before = list(sys.path)
    check("shop_app.jobs")
    assert sys.path == before


@pytest.mark.parametrize("name", ["a" * 300, "a." * 300 + "b"])
def test_a_name_too_long_for_a_file_is_told(name):
    assert [one.code for one in check(name)] in (["JS150"], ["JS168"])
