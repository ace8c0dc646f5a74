"""Which files are read, and what is said of those that can't be."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobspec.diagnostics import Diagnostic
from jobspec.load import read_sources
from jobspec.load.limits import MAX_SIZE
from jobspec.source import Source


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, *names, data=b"a: 1\n"):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def names(*arguments):
    found = list(read_sources(arguments))
    assert all(isinstance(one, Source) for one in found), found
    return [one.name for one in found]


def only(*arguments):
    (found,) = read_sources(arguments)
    return found


def test_a_directory_is_searched_in_sorted_order(folder):
    write(folder, "b/z.yml", "b/a.yaml", "a.json", "c.YAML", "README.md", "b/x.toml")
    assert names(".") == ["a.json", "c.YAML", "b/a.yaml", "b/z.yml"]


def test_hidden_and_installed_files_are_not_searched(folder):
    write(folder, "jobs.yaml", ".hidden.yaml", ".github/ci.yaml", "node_modules/x/a.json")
    write(folder, "env/pyvenv.cfg", "env/lib/a.yaml", "__pycache__/a.json", ".venv/a.yaml")
    assert names(folder) == [str(folder / "jobs.yaml")]


def test_a_named_file_is_read_whatever_it_is_called(folder):
    write(folder, ".hidden.yaml", "jobs.conf")
    assert names(".hidden.yaml", folder / "jobs.conf") == [
        ".hidden.yaml",
        str(folder / "jobs.conf"),
    ]


def test_a_link_that_leads_in_circles_is_not_followed(folder):
    write(folder, "a/jobs.yaml")
    (folder / "a" / "loop").symlink_to(folder, target_is_directory=True)
    assert names(".") == ["a/jobs.yaml"]


def test_a_glob_finds_files_and_directories(folder):
    write(folder, "a/one.yaml", "a/b/two.yaml", "c/three.json", "c/notes.md")
    assert names("a/**/*.yaml") == ["a/b/two.yaml", "a/one.yaml"]
    assert names("[ac]") == ["a/one.yaml", "a/b/two.yaml", "c/three.json"]


def test_a_file_whose_name_looks_like_a_glob_is_that_file(folder):
    write(folder, "[a].yaml", "a.yaml")
    assert names("[a].yaml") == ["[a].yaml"]


def test_a_file_named_twice_is_read_once(folder):
    write(folder, "jobs.yaml")
    assert names("jobs.yaml", ".", folder / "jobs.yaml", "*.yaml") == ["jobs.yaml"]


def test_standard_input_is_read_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("ä: 1\n".encode())))
    (found,) = read_sources(["-", "-"])
    assert (found.name, found.text) == ("<stdin>", "ä: 1\n")


def test_a_byte_order_mark_goes_and_line_breaks_stay(folder):
    write(folder, "jobs.yaml", data=b"\xef\xbb\xbfa: 1\r\n")
    assert only("jobs.yaml").text == "a: 1\r\n"


@pytest.mark.parametrize("argument", ["empty", "*.yaml", "none/**/*.json"])
def test_an_argument_that_finds_no_file_is_told(folder, argument):
    (folder / "empty").mkdir()
    found = only(argument)
    assert (found.code, found.source.name) == ("JS167", argument)


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere.yaml", "there is no such file"), ("nul\0.yaml", "no file can have this name")],
)
def test_a_file_that_is_not_there_is_told(folder, name, message):
    found = only(name)
    assert (found.code, found.message, found.source.name) == ("JS150", message, name)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("jobs.yml", "did you mean `jobs.yaml`?"),
        ("sub/jbos.yaml", "did you mean `sub/jobs.yaml`?"),
        ("sub/other.txt", "check the path"),
        ("nowhere/jobs.yaml", "check the path"),
        ("notes.tx", "check the path"),
    ],
)
def test_a_file_of_nearly_the_same_name_is_told(folder, name, advice):
    for there in ("jobs.yaml", "sub/jobs.yaml", "notes.txt"):
        write(folder, there)
    assert only(name).help == advice


def test_a_file_with_a_name_beyond_the_system_is_told(folder):
    found = only("x" * 5000)
    assert (found.code, found.message) == ("JS150", "this file can't be read: file name too long")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(folder):
    write(folder, "jobs.yaml")
    (folder / "jobs.yaml").chmod(0)
    assert only("jobs.yaml").message == "this file may not be read"


def test_a_refused_permission_is_told(folder, monkeypatch):
    write(folder, "jobs.yaml")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("jobspec.load.files._bytes_of", refuse)
    assert (only("jobs.yaml").code, only("jobs.yaml").message) == (
        "JS150",
        "this file may not be read",
    )


def test_a_directory_that_can_not_be_listed_is_told(folder, monkeypatch):
    write(folder, "jobs.yaml", "locked/a.yaml")
    scan = os.scandir

    def refuse(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    readable, refused = read_sources(["."])
    assert readable.name == "jobs.yaml"
    assert (refused.code, refused.source.name) == ("JS150", "./locked")


@pytest.mark.parametrize(
    ("data", "message", "line", "column"),
    [
        (b"\xe4: 1\n", "byte 0 of this file, 0xe4, is not UTF-8", 1, 1),
        ("ä: 1\nb: ".encode() + b"\xff", "byte 9 of this file, 0xff, is not UTF-8", 2, 4),
        ("a: 1\n".encode("utf-16"), "byte 0 of this file, 0xff, is not UTF-8", 1, 1),
        (b"a: \xed\xa0\x80", "byte 3 of this file, 0xed, is not UTF-8", 1, 4),
    ],
)
def test_bytes_that_are_not_utf_8_are_told_at_their_place(folder, data, message, line, column):
    write(folder, "jobs.yaml", data=data)
    found = only("jobs.yaml")
    assert (found.code, found.message) == ("JS151", message)
    assert found.source.position(found.span.start) == (line, column)


def test_a_large_file_is_refused_without_being_kept(folder):
    write(folder, "jobs.yaml", data=b"#" * (2 * MAX_SIZE))
    found = only("jobs.yaml")
    assert isinstance(found, Diagnostic)
    assert (found.code, found.source.text) == ("JS152", "")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no device without an end")
def test_a_device_without_an_end_is_refused():
    assert only("/dev/zero").code == "JS152"


def test_the_next_file_is_read_whatever_the_last_one_was(folder):
    write(folder, "good.yaml")
    found = list(read_sources(["nowhere", "good.yaml"]))
    assert [type(one) for one in found] == [Diagnostic, Source]


def test_a_search_passes_over_pipes_that_nobody_may_ever_write(folder):
    write(folder, "good.yaml")
    os.mkfifo("pipe.yaml")
    for argument in (".", "*.yaml"):
        assert [Path(one.name).name for one in read_sources([argument])] == ["good.yaml"]


def test_standard_input_that_is_closed_is_told(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    found = only("-")
    assert (found.code, found.message) == (
        "JS150",
        "this file can't be read: standard input is closed",
    )


@pytest.mark.parametrize("name", ["a/" + "b" * 300, "*" * 300])
def test_a_name_that_is_too_long_for_any_file_is_told(folder, name):
    assert only(name).code in ("JS150", "JS167")
