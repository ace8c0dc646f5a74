"""Keys against the types of an event: what is found, and what is not."""

from __future__ import annotations

import pytest

from jobspec.events import Event, check_key, read_schema
from jobspec.keys import KeyTemplate

TEXT, NUMBER, BOOLEAN = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
UUID = {"type": "string", "format": "uuid"}


def obj(**fields):
    return {"type": "object", "properties": fields, "required": list(fields)}


SCHEMA = {
    "type": "object",
    "required": [
        *(
            "a",
            "b",
            "slashed",
            "plain",
            "choice",
            "paths",
            "one",
            "n",
            "m",
            "small",
            "flag",
            "other",
        ),
        *(
            "list",
            "item",
            "twin",
            "mixed",
            "nullable",
            "anything",
            "id",
            "second",
            "parts",
            "maybe",
        ),
    ],
    "properties": {
        "a": TEXT,
        "b": TEXT,
        "slashed": {"type": "string", "pattern": "^[a-z/]+$"},
        "plain": {"type": "string", "pattern": "^[a-z]+$"},
        "choice": {"enum": ["web", "api"]},
        "paths": {"enum": ["a/b", "c"]},
        "one": {"const": "one"},
        "n": NUMBER,
        "m": {"type": "integer"},
        "small": {"type": "integer", "minimum": 0, "maximum": 100},
        "flag": BOOLEAN,
        "other": BOOLEAN,
        "list": {"type": "array"},
        "item": obj(name=TEXT, count=NUMBER),
        "twin": obj(name=TEXT),
        "mixed": {"type": ["string", "integer"]},
        "nullable": {"type": ["string", "null"]},
        "anything": {},
        "id": UUID,
        "second": UUID,
        "parts": {"anyOf": [obj(x=TEXT, y=TEXT), obj(x=TEXT)]},
        "maybe": {"anyOf": [obj(name=TEXT), {"type": "null"}]},
        "optional": TEXT,
        "optionalNumber": NUMBER,
        "void": {"type": ["string", "null"]},
        "open": {"type": "object", "additionalProperties": TEXT},
    },
}
EVENT = Event("github/push", read_schema(SCHEMA)[0])


def found(text, event=EVENT, **options):
    faults = check_key(KeyTemplate.parse(text), event, **options)
    return [(fault.code, text[slice(*fault.span)].removeprefix("event.data.")) for fault in faults]


def message(text):
    (fault,) = check_key(KeyTemplate.parse(text), EVENT)
    return fault.message


@pytest.mark.parametrize(
    "text",
    [
        "event.data.a",
        "event.data.a + '/' + event.data.b",
        "'x' + event.data.a + '/' + event.data.b + '!'",
        "event.data.item.name + '/' + event.data.a",
        "event.data.small",
        "event.data.small + '/' + event.data.a",
        "event.data.anything + '/' + event.data.anything.else",
        "event.data.id + event.data.a",
        "event.data.a + event.data.second",
        "event.data.one + event.data.a",
        "event.data.choice + event.data.a",
        "event.data.plain + '/' + event.data.a",
        "event.data.slashed + '/' + event.data.plain",
        "event.data.slashed + '/' + event.data.id",
        "event.data.slashed + ':' + event.data.a",
        "event.data.a + '/' + event.data.slashed",
        "event.data.slashed",
    ],
)
def test_a_key_of_texts_that_are_there_and_told_apart_has_no_fault(text):
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("event.data.aa", [("JS203", "aa")]),
        ("event.data.item.nme", [("JS203", "item.nme")]),
        ("event.data.itm.name", [("JS203", "itm")]),
        ("event.data.a.name", [("JS204", "a.name")]),
        ("event.data.a.name.x", [("JS204", "a.name")]),
        ("event.data.list.name", [("JS204", "list.name")]),
        ("event.data.optional", [("JS205", "optional")]),
        ("event.data.parts.y", [("JS205", "parts.y")]),
        ("event.data.maybe.name", [("JS205", "maybe.name")]),
        ("event.data.open.x", [("JS205", "open.x")]),
        ("event.data.void", [("JS205", "void")]),
        ("event.data.nullable", [("JS206", "nullable")]),
        ("event.data.n", [("JS207", "n")]),
        ("event.data.m", [("JS207", "m")]),
        ("event.data.flag", [("JS209", "flag")]),
        ("event.data.list", [("JS210", "list")]),
        ("event.data.item", [("JS210", "item")]),
        ("event.data.mixed", [("JS211", "mixed")]),
        ("event.data.a + event.data.b", [("JS430", "a + event.data.b")]),
        ("event.data.a + '' + event.data.b", [("JS430", "a + '' + event.data.b")]),
        ("event.data.small + event.data.a", [("JS430", "small + event.data.a")]),
        ("event.data.slashed + '/' + event.data.a", [("JS213", "'/'")]),
        ("event.data.paths + '/' + event.data.a", [("JS213", "'/'")]),
        ("event.data.slashed + '/' + event.data.choice + '/' + event.data.a", [("JS213", "'/'")]),
        ("event.data.optionalNumber", [("JS205", "optionalNumber"), ("JS207", "optionalNumber")]),
    ],
)
def test_each_fault_is_found_at_its_place_and_once(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("event.data.n + event.data.m", ["JS208"]),
        ("event.data.n + event.data.m + '/' + event.data.a", ["JS208"]),
        ("event.data.small + event.data.small", ["JS208"]),
        ("event.data.n + event.data.m + event.data.small", ["JS208", "JS208"]),
        ("event.data.mixed + event.data.n", ["JS208"]),
        ("event.data.optional + event.data.n + event.data.m", ["JS205", "JS430", "JS208"]),
        ("event.data.flag + event.data.other", ["JS212"]),
        ("event.data.item + event.data.twin", ["JS212"]),
    ],
)
def test_values_that_are_added_and_not_joined_are_one_fault(text, expected):
    assert [code for code, _ in found(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("event.data.n + '/' + event.data.m", ["JS207", "JS207"]),
        ("'' + event.data.n + '/' + event.data.m", ["JS207", "JS207"]),
        ("event.data.flag + '/' + event.data.other", ["JS209", "JS209"]),
        ("event.data.a + '/' + event.data.n + event.data.m", ["JS207", "JS430", "JS207"]),
    ],
)
def test_a_text_before_them_makes_values_join(text, expected):
    assert [code for code, _ in found(text)] == expected


def test_a_field_that_is_named_twice_is_told_of_once():
    assert found("event.data.n + '/' + event.data.n") == [("JS207", "n")]


def test_an_object_beside_its_own_field_is_another_finding():
    assert found("event.data.item + '/' + event.data.item.name") == []


def test_an_event_that_lacks_a_field_is_of_no_concern_where_it_is_rejected():
    text = "event.data.optional + '/' + event.data.nullable + '/' + event.data.maybe.name"
    assert found(text, is_whole=True) == []
    assert found("event.data.aa", is_whole=True) == [("JS203", "aa")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("event.data.maybe.name", "since `maybe` is not always an object"),
        ("event.data.void", "may be missing or null"),
        ("event.data.mixed", "is a text or a number"),
        ("event.data.list.x", "`event.data.list` of event `github/push` is an array"),
    ],
)
def test_the_message_says_why(text, said):
    assert said in message(text)


@pytest.mark.parametrize(
    ("name", "help_"),
    [
        ("aa", "did you mean `a`?"),
        ("OptionalNumber", "did you mean `optionalNumber`?"),
        ("optional_number", "did you mean `optionalNumber`?"),
        ("zzz", "name one of the fields that the schema of the event declares"),
        ("item.zzz", "there are `name` and `count`"),
        ("twin.zzz", "there is `name`"),
    ],
)
def test_the_nearest_name_is_suggested(name, help_):
    (fault,) = check_key(KeyTemplate.parse(f"event.data.{name}"), EVENT)
    assert fault.advice == help_
