"""JSON Schema to shapes.

The keywords that say which values there can be are understood, in any draft since 4: `type`,
`enum`, `const`, `properties`, `required`, `additionalProperties`, `patternProperties`, `allOf`,
`anyOf`, `oneOf`, local `$ref`s, and of texts and numbers what tells how a key has them. Keywords
that only make fewer values valid are passed over, where they can't make a finding wrong; with the
others (`not`, `if`, `dependentRequired`, a remote `$ref`, …) nothing is known but the names.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, cast

from jobspec.events.shapes import (
    UNKNOWN,
    Array,
    Boolean,
    Null,
    Number,
    Object,
    Property,
    Shape,
    String,
    alternatives,
    intersection,
    union,
    without_details,
)
from jobspec.keys.fault import quoted

Place = tuple[str | int, ...]

MOST_NESTED = 50
PLAIN_BELOW = 1_000_000  # from here on the reference writes 1e+06 (keys.jsonl)

_SCALARS: dict[str, Shape] = {"null": Null(), "boolean": Boolean(), "array": Array()}
_TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")
_INDEX = re.compile("[0-9]{1,9}")  # of a list, in a JSON pointer
_LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf")
_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")
_OF_OBJECTS = frozenset({"properties", "required", "additionalProperties", "patternProperties"})
_KNOWN = (
    *("type", "enum", "const", "required", "additionalProperties", "items", "pattern", "format"),
    *("$ref", *_LISTS_OF_SCHEMAS, *_MAPS_OF_SCHEMAS),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"),
)
_NOT_UNDERSTOOD = frozenset(
    {"not", "if", "then", "else", "dependencies", "dependentRequired", "dependentSchemas"}
    | {"$dynamicRef", "$recursiveRef", "extends", "disallow"}
)


class SchemaFault(NamedTuple):
    """One thing wrong with a schema, at the value that `place` leads to from its root.

    `is_about_key` where the name of that value is wrong and not the value.
    """

    place: Place
    message: str
    advice: str | None = None
    is_about_key: bool = False


def read_schema(schema: object) -> tuple[Shape, tuple[SchemaFault, ...]]:
    """Return what the data of an event can be by a JSON Schema, and what is wrong with that.

    `schema` is what a JSON file holds. Where something is wrong, nothing is known there.
    """
    reader = _Reader(schema)
    shape = reader.read(schema, ())
    objects = [one for one in alternatives(shape) if isinstance(one, Object) or one == UNKNOWN]
    if not objects:
        message = "the data of an event is an object, and this schema allows none"
        reader.fault((), message, "write `type: object`, and its fields under `properties`")
    return union(objects), tuple(reader.faults.values())


class _Reader:
    """One schema on its way to a shape. A part that is referred to is read once."""

    def __init__(self, root: object) -> None:
        self.faults: dict[Place, SchemaFault] = {}
        self._root = root
        self._read: dict[str, Shape] = {}
        self._depth = 0

    def fault(
        self, place: Place, message: str, advice: str | None = None, *, is_about_key: bool = False
    ) -> None:
        self.faults.setdefault(place, SchemaFault(place, message, advice, is_about_key))

    def read(self, schema: object, place: Place) -> Shape:
        """Return the shape of a schema that stands at a place."""
        if isinstance(schema, bool):
            return UNKNOWN
        keywords = self._mapping(schema, place, "a schema")
        if keywords is None or self._depth == MOST_NESTED:
            return UNKNOWN
        self._depth += 1
        self._report_misspelt(keywords, place)
        self._visit(keywords, place)
        shape = intersection([*self._parts(keywords, place)])
        self._depth -= 1
        return without_details(shape) if _NOT_UNDERSTOOD & keywords.keys() else shape

    def _parts(self, keywords: dict[str, Any], place: Place) -> list[Shape]:
        """Return the shapes that a value must all have."""
        parts = [self._own(keywords, place)]
        if "$ref" in keywords:
            parts.append(self._referred(keywords["$ref"], (*place, "$ref")))
        parts += self._schemas(keywords, "allOf", place)
        for name in ("anyOf", "oneOf"):
            if name in keywords:
                parts.append(union(self._schemas(keywords, name, place)))
        return parts

    def _schemas(self, keywords: dict[str, Any], name: str, place: Place) -> list[Shape]:
        listed = keywords.get(name, [])
        if not isinstance(listed, list):
            self.fault((*place, name), f"`{name}` must be a list of schemas")
            return []
        return [
            self.read(one, (*place, name, number))
            for number, one in enumerate(cast("list[object]", listed))
        ]

    def _referred(self, reference: object, place: Place) -> Shape:
        """Return the shape of what a local reference names; one inside itself is unknown there."""
        if not isinstance(reference, str):
            self.fault(place, "`$ref` must be a text")
            return UNKNOWN
        if reference != "#" and not reference.startswith("#/"):
            return UNKNOWN
        if reference not in self._read:
            self._read[reference] = UNKNOWN
            self._read[reference] = self._target(reference, place)
        return self._read[reference]

    def _target(self, reference: str, place: Place) -> Shape:
        found = self._root
        target: list[str | int] = []
        for step in reference.split("/")[1:]:
            name = _unquoted(step)
            key = int(name) if isinstance(found, list) and _INDEX.fullmatch(name) else name
            try:
                found = cast("Any", found)[key]
            except (LookupError, TypeError):
                self.fault(place, f"nothing in this schema is at {quoted(reference)}")
                return UNKNOWN
            target.append(key)
        return self.read(found, tuple(target))

    def _own(self, keywords: dict[str, Any], place: Place) -> Shape:
        """Return what the keywords say that need no other schema."""
        parts: list[Shape] = []
        if "enum" in keywords:
            parts.append(self._choices(keywords["enum"], (*place, "enum")))
        if "const" in keywords:
            parts.append(_of_value(keywords["const"]))
        names = self._type_names(keywords, place)
        if names:
            parts.append(union(self._of_type(name, keywords, place) for name in names))
        return intersection(parts)

    def _choices(self, values: object, place: Place) -> Shape:
        if isinstance(values, list) and values:
            choices = cast("list[object]", values)
            texts = [one for one in choices if isinstance(one, str)]
            others = [_of_value(one) for one in choices if not isinstance(one, str)]
            return union([*([_of_texts(texts)] if texts else []), *others])
        self.fault(place, "`enum` must be a list of values, with one at least")
        return UNKNOWN

    def _type_names(self, keywords: dict[str, Any], place: Place) -> list[str]:
        if "type" not in keywords:  # fields without a type are still those of an object
            return ["object"] if _OF_OBJECTS & keywords.keys() else []
        written = keywords["type"]
        names = cast("list[object]", written) if isinstance(written, list) else [written]
        unknown = [name for name in names if name not in _TYPES]
        for name in unknown:
            near = _near(name, _TYPES, 0.6) if isinstance(name, str) else None
            message = f"{quoted(name)} is not a type of JSON" if isinstance(name, str) else _NO_TYPE
            at = (*place, "type", names.index(name)) if names is written else (*place, "type")
            advice = f"did you mean `{near}`?" if near else f"write one of {', '.join(_TYPES)}"
            self.fault(at, message, advice)
        return [] if unknown else [str(name) for name in names]

    def _of_type(self, name: str, keywords: dict[str, Any], place: Place) -> Shape:
        match name:
            case "object":
                return self._object(keywords, place)
            case "string":
                return self._string(keywords, place)
            case "number" | "integer":
                return Number(name == "integer" and _is_below_a_million(keywords))
            case _:
                return _SCALARS[name]

    def _string(self, keywords: dict[str, Any], place: Place) -> Shape:
        pattern = keywords.get("pattern")
        if pattern is not None and not isinstance(pattern, str):
            self.fault((*place, "pattern"), "`pattern` must be a text")
            return UNKNOWN
        length = keywords.get("minLength")
        is_uuid = keywords.get("format") == "uuid"
        is_fixed = length is not None and length == keywords.get("maxLength")
        return String(None, pattern, is_uuid, is_uuid or is_fixed)

    def _object(self, keywords: dict[str, Any], place: Place) -> Object:
        declared = self._mapping(keywords.get("properties", {}), (*place, "properties"))
        required = self._required(keywords.get("required", []), (*place, "required"))
        fields = {
            name: Property(self.read(one, (*place, "properties", name)), name in required)
            for name, one in (declared or {}).items()
        }
        for name in required - fields.keys():
            fields[name] = Property(UNKNOWN, is_required=True)
        return Object(fields, self._rest(keywords, place))

    def _rest(self, keywords: dict[str, Any], place: Place) -> Shape | None:
        """Return what undeclared fields hold. Where no field is declared at all, any can be."""
        rest = keywords.get("additionalProperties")
        if "patternProperties" in keywords:
            return UNKNOWN
        if rest is None:
            return None if "properties" in keywords else UNKNOWN
        shape = self.read(rest, (*place, "additionalProperties"))
        return None if rest is False else shape

    def _required(self, names: object, place: Place) -> set[str]:
        listed = cast("list[object]", names) if isinstance(names, list) else [None]
        if all(isinstance(name, str) for name in listed):
            return {str(name) for name in listed}
        self.fault(place, "`required` must be a list of the names of fields", "write `[id]`")
        return set()

    def _visit(self, keywords: dict[str, Any], place: Place) -> None:
        """Read schemas that no field's shape depends on, for what is wrong with them."""
        if isinstance(keywords.get("items"), dict):
            self.read(keywords["items"], (*place, "items"))
        for name in ("$defs", "definitions"):
            if name in keywords:
                parts = self._mapping(keywords[name], (*place, name)) or {}
                for part in parts:
                    self._referred(_pointer((*place, name, part)), (*place, name, part))

    def _mapping(
        self, value: object, place: Place, what: str | None = None
    ) -> dict[str, Any] | None:
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
        self.fault(place, f"{what or f'`{place[-1]}`'} must be a mapping")
        return None

    def _report_misspelt(self, keywords: dict[str, Any], place: Place) -> None:
        """Report names that come near a keyword. Any other is a note, which JSON Schema allows."""
        for name in keywords:
            near = None if name in _WORDS else _near(name, _KNOWN, 0.8)
            if near:
                message = f"{quoted(name)} is not a keyword of JSON Schema"
                advice = f"did you mean `{near}`?"
                self.fault((*place, name), message, advice, is_about_key=True)


_NO_TYPE = "a type is the name of one"
_WORDS = frozenset(
    {*_KNOWN, *_NOT_UNDERSTOOD, "minItems", "maxItems", "uniqueItems", "contains", "minContains"}
    | {"maxContains", "prefixItems", "additionalItems", "unevaluatedItems", "propertyNames"}
    | {"minProperties", "maxProperties", "unevaluatedProperties", "multipleOf", "title", "default"}
    | {"description", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"}
    | {"$schema", "$id", "id", "$anchor", "$vocabulary", "$dynamicAnchor", "discriminator"}
    | {"contentEncoding", "contentMediaType", "contentSchema", "nullable"}
)


def _of_value(value: object) -> Shape:
    match value:
        case None:
            return Null()
        case bool():
            return Boolean()
        case int() | float():
            return Number(float(value).is_integer() and abs(value) < PLAIN_BELOW)
        case str():
            return _of_texts([value])
        case list():
            return Array()
        case _:
            return Object({}, UNKNOWN)


def _of_texts(texts: list[str]) -> String:
    return String(frozenset(texts), has_fixed_length=len({len(text) for text in texts}) == 1)


def _is_below_a_million(keywords: dict[str, Any]) -> bool:
    least = keywords.get("minimum", keywords.get("exclusiveMinimum"))
    most = keywords.get("maximum", keywords.get("exclusiveMaximum"))
    return all(isinstance(one, int | float) and abs(one) < PLAIN_BELOW for one in (least, most))


def _near(name: str, known: tuple[str, ...], cutoff: float) -> str | None:
    """Return what was probably meant, where something comes near."""
    from difflib import get_close_matches  # noqa: PLC0415  only needed where something is wrong

    found = get_close_matches(name, known, n=1, cutoff=cutoff)
    return found[0] if found else None


def _unquoted(step: str) -> str:
    """Return the name that a step of a JSON pointer in a URL stands for."""
    from urllib.parse import unquote  # noqa: PLC0415  few schemas need it

    return unquote(step).replace("~1", "/").replace("~0", "~")


def _pointer(place: Place) -> str:
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in place)
    return "#" + "".join(f"/{step}" for step in steps)
