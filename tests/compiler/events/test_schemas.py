"""JSON Schema to shapes: what is known, what is not, and what is wrong with a schema."""

from __future__ import annotations

import pytest

from jobspec.events import UNKNOWN, read_schema
from jobspec.events.lookup import DeadEnd, look_up
from jobspec.events.shapes import Array, Boolean, Null, Number, Object, OneOf, Property, String

NINE_OBJECTS = {"anyOf": [{"type": "object", "required": [name]} for name in "abcdefghi"]}


def shape(schema):
    """The shape of a value, as the only field of an event's data."""
    read, faults = read_schema({"properties": {"a": schema}})
    assert faults == ()
    return read.fields["a"].shape


def schema_id(value):
    """Name a case by its schema: a set in a shape prints in another order in each process."""
    return str(value) if isinstance(value, dict) else ""


def data(schema):
    read, faults = read_schema(schema)
    assert faults == ()
    return read


def faults(schema):
    return [fault.message for fault in read_schema(schema)[1]]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, String()),
        ({"type": "number"}, Number()),
        ({"type": "integer"}, Number()),
        ({"type": "boolean"}, Boolean()),
        ({"type": "null"}, Null()),
        ({"type": "array", "items": {"type": "string"}}, Array()),
        ({"type": ["string", "null"]}, OneOf((String(), Null()))),
        ({"type": "integer", "minimum": 0, "maximum": 999_999}, Number(is_plain=True)),
        ({"type": "integer", "minimum": 0, "maximum": 1_000_000}, Number()),
        ({"type": "number", "minimum": 0, "maximum": 9}, Number()),
        ({"type": "integer", "maximum": 9}, Number()),
        ({"type": "string", "format": "uuid"}, String(is_uuid=True, has_fixed_length=True)),
        ({"type": "string", "minLength": 4, "maxLength": 4}, String(has_fixed_length=True)),
        ({"type": "string", "minLength": 1}, String()),
        ({"type": "string", "pattern": "^a$"}, String(pattern="^a$")),
        ({"const": "a"}, String(frozenset("a"), has_fixed_length=True)),
        ({"enum": ["a", "bc"]}, String(frozenset(["a", "bc"]))),
        ({"enum": ["a", None]}, OneOf((String(frozenset("a"), has_fixed_length=True), Null()))),
        ({"enum": [1, 2]}, Number(is_plain=True)),
        ({"const": 1e6}, Number()),
        ({"const": True}, Boolean()),
        ({"const": []}, Array()),
        ({"const": {}}, Object({}, UNKNOWN)),
        ({"type": "string", "enum": ["a"]}, String(frozenset("a"), has_fixed_length=True)),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, OneOf((String(), Null()))),
        ({"oneOf": [{"type": "string"}, {"type": "string"}]}, String()),
        ({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}, String()),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, Number()),
        (
            {"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]},
            String(frozenset("b"), has_fixed_length=True),
        ),
        ({"allOf": [NINE_OBJECTS, NINE_OBJECTS]}, UNKNOWN),  # more than anybody would read of
        ({"type": "string", "anyOf": [{"pattern": "a"}, {"maxLength": 3}]}, String()),
        ({"type": "object", "properties": {}}, Object({})),
        ({"type": "object"}, Object({}, UNKNOWN)),
        ({"additionalProperties": {"type": "string"}}, Object({}, String())),
        ({"patternProperties": {"^x": {}}, "properties": {}}, Object({}, UNKNOWN)),
        ({"required": ["b"]}, Object({"b": Property(UNKNOWN, is_required=True)}, UNKNOWN)),
        ({}, UNKNOWN),
        (True, UNKNOWN),
        ({"description": "a note", "x-ours": 1}, UNKNOWN),
    ],
    ids=schema_id,
)
def test_what_a_schema_says_is_known(schema, expected):
    assert shape(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "not": {"const": "a"}},
        {"type": "string", "if": {}, "then": {}},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "other.json#/a"},
        {"$ref": "#anchor"},
        {"allOf": [{"type": "string"}, {"type": "number"}]},  # fits nothing: nothing is said
        {"anyOf": [{"type": "string"}] + [{"properties": {str(n): {}}} for n in range(70)]},
    ],
    ids=str,
)
def test_where_a_rule_is_not_understood_nothing_is_known(schema):
    assert shape(schema) == UNKNOWN


def test_a_rule_that_is_not_understood_leaves_the_names_of_fields():
    read = data({"properties": {"a": {"type": "null"}}, "dependentRequired": {"b": ["a"]}})
    assert read == Object({"a": Property(UNKNOWN, is_required=True)})


def test_fields_are_closed_unless_the_schema_says_that_there_are_more():
    fields = {"a": Property(String(), is_required=True), "b": Property(Number(), is_required=False)}
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "number"}}, "required": ["a"]}
    assert data(schema) == Object(fields)
    assert data({**schema, "additionalProperties": False}) == Object(fields)
    assert data({**schema, "additionalProperties": True}) == Object(fields, UNKNOWN)
    assert data({**schema, "unevaluatedProperties": False}) == Object(fields)


def test_the_parts_of_all_of_add_up():
    read = data(
        {
            "allOf": [
                {"properties": {"a": {"type": ["string", "null"]}}},
                {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["b"]},
            ]
        }
    )
    assert read == Object(
        {"a": Property(String(), is_required=False), "b": Property(UNKNOWN, is_required=True)}
    )


def test_a_field_is_required_where_any_part_requires_it():
    part = {"properties": {"a": {"type": "string"}}}
    required = data({"allOf": [part, {**part, "required": ["a"]}]})
    assert required == Object({"a": Property(String(), is_required=True)})


def test_a_choice_of_required_fields_leaves_each_optional():
    schema = {
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    assert look_up(data(schema), ["a"]).gap == 0
    assert isinstance(look_up(data(schema), ["c"]), DeadEnd)


def test_references_are_followed():
    schema = {
        "$ref": "#/$defs/a~1b%20c",
        "$defs": {
            "a/b c": {"properties": {"x": {"$ref": "#/$defs/list/1"}}},
            "list": [{}, {"type": "string"}],
        },
    }
    assert look_up(read_schema(schema)[0], ["x"]).shapes == (String(),)


def test_a_schema_that_refers_to_itself_is_read():
    schema = {"properties": {"name": {"type": "string"}, "parent": {"$ref": "#"}}}
    assert look_up(data(schema), ["parent", "name"]).gap == 0
    assert look_up(data(schema), ["parent", "parent", "anything"]).shapes == (UNKNOWN,)


def test_long_chains_and_wide_diamonds_of_references_are_read_in_no_time():
    chain = {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(3000)} | {"3000": {}}
    assert read_schema({"$ref": "#/$defs/0", "$defs": chain})[1] == ()
    diamond = {
        str(n): {"properties": {side: {"$ref": f"#/$defs/{n + 1}"} for side in "ab"}}
        for n in range(40)
    } | {"40": {"type": "string"}}
    read = data({"$ref": "#/$defs/0", "$defs": diamond})
    assert isinstance(look_up(read, ["c"]), DeadEnd)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (5, "a schema must be a mapping"),
        ([], "a schema must be a mapping"),
        ({"properties": {"a": None}}, "a schema must be a mapping"),
        ({"properties": []}, "`properties` must be a mapping"),
        ({"properties": {"a": {"type": "sting"}}}, "`sting` is not a type of JSON"),
        ({"properties": {"a": {"type": ["string", "nul"]}}}, "`nul` is not a type of JSON"),
        ({"properties": {"a": {"type": 5}}}, "a type is the name of one"),
        ({"required": "a"}, "`required` must be a list of the names of fields"),
        ({"required": [1]}, "`required` must be a list of the names of fields"),
        ({"properties": {"a": {"enum": []}}}, "`enum` must be a list of values"),
        ({"anyOf": {}}, "`anyOf` must be a list of schemas"),
        ({"$ref": 5}, "`$ref` must be a text"),
        ({"$ref": "#/$defs/a"}, "nothing in this schema is at `#/$defs/a`"),
        ({"$ref": "#/allOf/7", "allOf": []}, "nothing in this schema is at `#/allOf/7`"),
        (
            {"$ref": "#/allOf/\N{ARABIC-INDIC DIGIT ONE}", "allOf": [{}, {}]},
            "nothing in this schema is at `#/allOf/",
        ),
        ({"$ref": f"#/allOf/{'9' * 5000}", "allOf": [{}]}, "nothing in this schema is at `#/"),
        ({"properties": {"a": {"type": "string", "pattern": 5}}}, "`pattern` must be a text"),
        ({"propertes": {}}, "`propertes` is not a keyword of JSON Schema"),
        ({"properties": {"a": {"items": {"typ": "null"}}}}, "`typ` is not a keyword"),
        ({"$defs": {"a": {"type": "sting"}}}, "`sting` is not a type of JSON"),
        ({"type": "string"}, "the data of an event is an object, and this schema allows none"),
        ({"type": ["array", "null"]}, "the data of an event is an object"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_schema_is_told_once(schema, message):
    (found,) = faults(schema)
    assert found.startswith(message)


@pytest.mark.parametrize(
    "schema",
    [
        {"title": "Push", "description": "…", "$schema": "x", "$id": "y", "examples": [{}]},
        {"properties": {"type": {"type": "string"}, "propertes": {}, "required": {}}},
        {"properties": {"a": {"type": "array", "items": True, "minItems": 1}}},
        {"minProperties": 1, "propertyNames": {"pattern": "^a"}},
        {"properties": {"a": {"enum": [None, 1, "a", True, [], {}]}}},
    ],
    ids=str,
)
def test_nothing_is_wrong_with_a_good_schema(schema):
    assert faults(schema) == []


def test_a_fault_is_at_its_place():
    _, found = read_schema({"properties": {"a": {"allOf": [{}, {"type": ["null", "x"]}]}}})
    assert [fault.place for fault in found] == [("properties", "a", "allOf", 1, "type", 1)]
