"""What holds for every schema, every event that is valid by it, and every key."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from jobspec.events import Event, check_key, read_schema
from jobspec.keys import KeyTemplate
from jobspec.keys.lint import lint

NAMES = ("a", "b", "c", "d")
words = st.text(alphabet="abX/:- é1", max_size=3)

LEAVES = [
    ({"type": "string"}, words),
    ({"type": "string"}, words),
    ({"type": "string", "format": "uuid"}, st.uuids().map(str)),
    ({"enum": ["x", "y/z"]}, st.sampled_from(["x", "y/z"])),
    ({"enum": ["x", None, 7]}, st.sampled_from(["x", None, 7])),
    ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False)),
    ({"type": "integer"}, st.integers(-(2**60), 2**60)),
    ({"type": "integer", "minimum": 0, "maximum": 9}, st.integers(0, 9)),
    ({"type": "boolean"}, st.booleans()),
    ({"type": ["string", "null"]}, st.none() | words),
    ({"type": ["boolean", "null"]}, st.none() | st.booleans()),
    ({"type": "null"}, st.none()),
    ({"type": "array", "items": {"type": "string"}}, st.lists(words, max_size=2)),
]
GAPS = {"JS203", "JS204", "JS205"}
NULLS = {"JS205", "JS206"}
TYPES = {"JS207", "JS208", "JS209", "JS210", "JS211", "JS212", "JS435"}
KEYWORDS = [
    *("type", "properties", "required", "anyOf", "allOf", "$ref", "enum", "const", "$defs", "a"),
    *("additionalProperties", "pattern", "items", "not", "minimum", "patternProperties"),
]
EXAMPLES = settings().max_examples // 4  # they cost more than those of other tests


@st.composite
def objects(draw, value_schemas):
    """The schema of an object, and a strategy for objects that are valid by it."""
    fields = draw(st.dictionaries(st.sampled_from(NAMES), value_schemas, max_size=4))
    required = [name for name in fields if draw(st.booleans())]
    schema = {
        "type": "object",
        "properties": {name: schema for name, (schema, _) in fields.items()},
        "required": required,
    }
    optional = {name: values for name, (_, values) in fields.items() if name not in required}
    if draw(st.booleans()):
        schema["additionalProperties"] = {"type": "number"}
        optional |= {name: st.integers(0, 9) for name in NAMES if name not in fields}
    always = {name: values for name, (_, values) in fields.items() if name in required}
    return schema, st.fixed_dictionaries(always, optional=optional)


@st.composite
def choices(draw, value_schemas):
    """A schema that allows what either of two does."""
    (one, these), (other, those) = draw(value_schemas), draw(value_schemas)
    return {draw(st.sampled_from(["anyOf", "oneOf"])): [one, other]}, these | those


value_schemas = st.recursive(
    st.sampled_from(LEAVES), lambda inner: objects(inner) | choices(inner), max_leaves=6
)


@st.composite
def typed_events(draw):
    """A schema, and an event whose data is valid by it."""
    schema, values = draw(objects(value_schemas))
    value = draw(values)
    if not Draft202012Validator(schema).is_valid(value):  # of `oneOf`, only one may hold
        schema, values = draw(objects(st.sampled_from(LEAVES)))
        value = draw(values)
    return schema, {"name": "e", "data": value}


paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3)
terms = st.one_of(
    paths.map(lambda names: ".".join(("event.data", *names))),
    paths.map(lambda names: ".".join(("event.data", *names))),
    st.sampled_from(["'/'", "'x'", "''"]),
)
texts = st.lists(terms, min_size=1, max_size=5).map(" + ".join)


def codes(template, schema):
    shape, faults = read_schema(schema)
    assert faults == ()
    found = [*check_key(template, Event("e", shape)), *lint(template, "debounce")]
    assert len({(fault.code, fault.span) for fault in found}) == len(found)
    for fault in found:
        assert 0 <= fault.span.start < fault.span.end <= len(template.text)
    return {fault.code for fault in found}


@settings(max_examples=EXAMPLES)
@given(typed_events(), texts)
def test_whatever_a_valid_event_does_to_a_key_was_foretold(typed_event, text):
    schema, event = typed_event
    template = KeyTemplate.parse(text)
    found = codes(template, schema)
    key = template.resolve(event)
    for path in template.missing(event):
        assert found & (NULLS if is_null(event["data"], path) else GAPS), path
    if key.outcome == "error":
        assert found & (GAPS | NULLS | TYPES)
    if key.outcome == "absent":
        assert found & (GAPS | {"JS209", "JS211"})
    if any(token in key.text for token in ("e+", "map[", "NULL_VALUE", "<nil>")):
        assert found & (NULLS | TYPES)


def is_null(data, path):
    for name in path:
        if not isinstance(data, dict) or name not in data:
            return False
        data = data[name]
    return data is None


@given(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True),
    st.sampled_from(["/", ":", " - ", "|"]),
    st.booleans(),
)
def test_a_key_of_required_texts_with_separators_has_no_finding(names, separator, is_nested):
    leaf = {"type": "string"}
    schema = {"properties": dict.fromkeys(names, leaf), "required": names}
    if is_nested:
        schema = {"properties": {"in": schema, "id": leaf}, "required": ["in", "id"]}
        schema["properties"]["nested"] = schema["properties"].pop("in")
        schema["required"] = ["nested", "id"]
    root = "event.data.nested" if is_nested else "event.data"
    text = f" + '{separator}' + ".join(f"{root}.{name}" for name in names)
    assert codes(KeyTemplate.parse(text), schema) == set()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYWORDS),
            inner | st.sampled_from(["string", "object", "#", "#/properties/a", "integer"]),
            max_size=4,
        )
    ),
    max_leaves=10,
)


@settings(max_examples=EXAMPLES)
@given(json_values)
def test_any_json_at_all_is_read_as_a_schema(value):
    shape, faults = read_schema(value)
    check_key(KeyTemplate.parse("event.data.a + '/' + event.data.a.b"), Event("e", shape))
    for fault in faults:
        assert fault.message.isprintable()
