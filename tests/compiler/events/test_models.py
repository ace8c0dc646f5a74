"""Models of the user's own: imported by name, and read as JSON Schemas."""

from __future__ import annotations

import sys

import pytest

from jobspec.events import model_schema, read_schema
from jobspec.events.lookup import look_up
from jobspec.events.shapes import Null, Number, String
from jobspec.imports import NotImportedError

MODULE = """
from dataclasses import dataclass
from enum import Enum
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict


class Plan(Enum):
    FREE = "free"
    PRO = "pro"


class Owner(BaseModel):
    login: str
    parent: "Owner | None" = None


class Push(BaseModel):
    installation_id: UUID = Field(alias="installationId")
    number: int
    owner: Owner
    plan: Plan
    mode: Literal["a", "b"]
    branch: str | None = None
    extra: dict[str, int]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    id: str


class Typed(TypedDict):
    id: str


@dataclass
class Plain:
    id: str


VALUE = 5
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module in the working directory; others can be put beside it."""
    (tmp_path / "their_events.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield "their_events"
    for name in set(sys.modules) - before:
        del sys.modules[name]


def push(module):
    shape, faults = read_schema(model_schema(f"{module}:Push"))
    assert faults == ()
    return shape


def test_a_pydantic_model_is_read_by_the_names_that_events_have(module):
    shape = push(module)
    uuid = String(is_uuid=True, has_fixed_length=True)
    assert look_up(shape, ["installationId"]).shapes == (uuid,)
    assert look_up(shape, ["number"]).shapes == (Number(),)
    assert look_up(shape, ["owner", "login"]).shapes == (String(),)
    assert look_up(shape, ["plan"]).shapes == (String(frozenset(["free", "pro"])),)
    assert look_up(shape, ["mode"]).shapes[0].has_fixed_length
    assert look_up(shape, ["extra", "x"]).shapes == (Number(),)
    assert look_up(shape, ["installation_id"]).kind == "undeclared"


def test_a_default_makes_a_field_optional(module):
    branch = look_up(push(module), ["branch"])
    assert (branch.shapes, branch.gap) == ((String(), Null()), 0)


def test_models_that_take_more_fields_are_open(module):
    shape, _ = read_schema(model_schema(f"{module}:Open"))
    assert look_up(shape, ["more"]).gap == 0


@pytest.mark.parametrize("name", ["Typed", "Plain"])
def test_whatever_pydantic_reads_is_a_model(module, name):
    shape, _ = read_schema(model_schema(f"{module}:{name}"))
    assert look_up(shape, ["id"]).shapes == (String(),)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.at.all:Push", "there is no module `nowhere`"),
        ("their_events:Pusch", "`their_events` has no `Pusch`"),
        ("their_events:Push.Inner", "`their_events` has no `Push.Inner`"),
        ("their_events:VALUE", "`their_events:VALUE` has no JSON Schema: "),
        ("failing:Push", "`failing` was found, but importing it fails: RuntimeError: no database"),
        ("leaving:Push", "`leaving` was found, but importing it fails: SystemExit: 3"),
        ("needing:Push", "`needing` was found, but importing it fails: ModuleNotFoundError"),
    ],
)
def test_a_model_that_is_none_is_told_in_one_line(module, tmp_path, name, message):
    (tmp_path / "failing.py").write_text("raise RuntimeError('no database\\nat all')")
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)")
    (tmp_path / "needing.py").write_text("import not_installed")
    with pytest.raises(NotImportedError) as caught:
        model_schema(name)
    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()


def test_the_search_path_is_left_as_it_was(module):
    before = list(sys.path)
    model_schema(f"{module}:Push")
    assert sys.path == before
