"""What stands in several places is the same in each: keywords, defaults, sync and async."""

from __future__ import annotations

import inspect
from datetime import timedelta

import pytest

from jobspec_engine import AsyncClient, Client, Engine, Retention, Worker
from jobspec_engine.cli import commands
from jobspec_engine.doctor import examine
from jobspec_engine.migrate import DEFAULT_SCHEMA
from jobspec_engine.statements import Statements
from jobspec_engine.testing import Clock

OPENS = {"open", "close"}  # of the clients alone: an engine is opened by `async with`


def keywords(function):
    """Return the parameters that are passed by name, but for the connection of a caller."""
    return {
        name: (one.kind, one.default)
        for name, one in inspect.signature(function).parameters.items()
        if name not in ("self", "connection")
    }


def methods(cls):
    return {name for name in vars(cls) if not name.startswith("_")}


def defaults_of(command):
    (found,) = (one for one in commands if one.name == command)
    return {
        option.name: option.type.convert(option.default, option, None)
        for option in found.params
        if isinstance(option.default, str | int) and not isinstance(option.default, bool)
    }


def test_both_clients_take_the_same():
    assert methods(Client) == methods(AsyncClient)
    for name in ("__init__", *methods(Client)):
        assert keywords(getattr(Client, name)) == keywords(getattr(AsyncClient, name)), name


@pytest.mark.parametrize("name", sorted(methods(Client) - OPENS))
def test_an_engine_sends_and_asks_as_its_client_does(name):
    assert keywords(getattr(Engine, name)) == keywords(getattr(AsyncClient, name))


def test_an_engine_s_worker_has_the_defaults_of_a_worker():
    of_engine, of_worker = keywords(Engine.worker), keywords(Worker)
    assert of_engine == {name: of_worker[name] for name in of_engine}
    assert of_worker.keys() - of_engine.keys() == {"jobs", "dsn", "schema", "short"}


def test_the_command_s_worker_has_the_defaults_of_a_worker():
    of_command = defaults_of("worker")
    for name in ("concurrency", "lease"):
        assert of_command[name] == inspect.signature(Worker).parameters[name].default


def test_the_command_prunes_what_a_worker_prunes():
    retention = Retention()
    of_command = defaults_of("prune")
    for name in ("runs", "events", "dead_letters", "batch"):
        assert of_command[name] == getattr(retention, name), name
    assert isinstance(of_command["runs"], timedelta)


@pytest.mark.parametrize("of", [Client, AsyncClient, Engine, Worker, examine, Statements, Clock])
def test_the_schema_has_one_default_name(of):
    assert inspect.signature(of).parameters["schema"].default == DEFAULT_SCHEMA
