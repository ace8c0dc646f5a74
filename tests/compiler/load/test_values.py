"""What a text means: YAML 1.2 core, and strict JSON."""

from __future__ import annotations

import math
import sys

import pytest

from jobspec.load import MappingNode, ScalarNode, SequenceNode, load_text, yaml_events
from jobspec.source import Span


def plain(text, name="jobs.yaml"):
    loaded = load_text(text, name)
    assert loaded.diagnostics == ()
    return loaded.node.plain()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("no", "no"),
        ("y", "y"),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("tRUE", "tRUE"),
        ("false", False),
        ("null", None),
        ("Null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("1e3", 1000.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-1.5E-2", -0.015),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("2024-01-01", "2024-01-01"),
        ("2m", "2m"),
        (".", "."),
        ("+", "+"),
        ("-", [None]),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ("!!int 1", 1),
        ("!!float 1", 1.0),
        ("!!null ''", None),
        ("!!bool true", True),
        ("=", "="),
        ("٣", "٣"),
    ],
)
def test_a_plain_scalar_means_what_yaml_1_2_says(written, value):
    found = plain(f"- {written}\n")[0] if written != "-" else plain("-\n")
    assert (found, type(found)) == (value, type(value))


def test_not_a_number_is_a_number():
    assert math.isnan(plain("- .NaN\n")[0])


def test_a_text_in_block_style_is_never_a_number():
    assert plain("- |\n  1\n- >-\n  true\n") == ["1\n", "true"]


def test_mappings_and_lists_keep_their_order_and_places():
    text = "jobs:\n  - id: a\n    on: {x: 1, y: [2]}\nevents: {}\n"
    root = load_text(text, "jobs.yaml").node
    assert isinstance(root, MappingNode)
    assert [entry.name for entry in root.entries] == ["jobs", "events"]
    jobs = root.get("jobs")
    assert isinstance(jobs, SequenceNode)
    job = jobs.items[0]
    assert isinstance(job, MappingNode)
    assert text[slice(*job.span)] == "id: a\n    on: {x: 1, y: [2]}"
    assert text[slice(*job.get("on").span)] == "{x: 1, y: [2]}"
    assert text[slice(*jobs.span)] == "- id: a\n    on: {x: 1, y: [2]}"
    assert root.get("nothing") is None


def test_anchors_and_tags_are_not_part_of_the_place_of_a_value():
    text = "a: &x !!str # why\n  text\nb: &y\n  c: *x\nd: &z [1]\n"
    root = load_text(text, "jobs.yaml").node
    assert text[slice(*root.get("a").span)] == "text"
    assert text[slice(*root.get("b").span)] == "c: *x"
    assert text[slice(*root.get("d").span)] == "[1]"
    assert root.plain() == {"a": "text", "b": {"c": "text"}, "d": [1]}


def test_an_alias_stands_where_its_value_is_written():
    text = "a: &x one\nb: *x\n"
    root = load_text(text, "jobs.yaml").node
    assert root.get("b") is root.get("a")


def test_the_place_of_a_block_text_ends_with_its_last_word():
    text = "a: |+\n  one\n\n\nb: 1\n"
    assert text[slice(*load_text(text, "x.yaml").node.get("a").span)] == "|+\n  one"


def test_a_byte_order_mark_is_dropped():
    loaded = load_text("\ufeffa: 1\n", "jobs.yaml")
    assert loaded.node.plain() == {"a": 1}
    assert loaded.node.span == Span(0, 4)


def test_carriage_returns_end_lines():
    assert plain("a: |\r\n  x\r\n  y\r\nb: 1\r\n") == {"a": "x\ny\n", "b": 1}


def test_a_document_may_be_framed():
    assert plain("%YAML 1.2\n---\na: 1\n...\n") == {"a": 1}


def test_json_is_read_with_places():
    text = '{"a": [1, -2.5e3, true, null, "x\\u00e9\\ud83d\\ude00"], "b": {}}\n'
    root = load_text(text, "jobs.json").node
    assert root.plain() == {"a": [1, -2500.0, True, None, "xé😀"], "b": {}}
    item = root.get("a").items[1]
    assert text[slice(*item.span)] == "-2.5e3"
    assert isinstance(item, ScalarNode)
    assert text[slice(*root.get("b").span)] == "{}"


def test_json_allows_line_separators_in_texts():
    assert plain('["\u2028"]', "jobs.json") == ["\u2028"]


def test_without_libyaml_the_slower_parser_serves(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml._yaml", None)
    assert yaml_events._fastest_parser() is yaml_events.PythonParser
