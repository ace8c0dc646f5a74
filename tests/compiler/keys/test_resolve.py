"""Resolving a key of events as callers really have them."""

from __future__ import annotations

import sys
from collections import ChainMap, OrderedDict, defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import NamedTuple

import pytest

from jobspec.keys import EventError, Key, KeyTemplate
from jobspec.keys.decode import MAX_DEPTH

MAIN = "event.data.installationId + '/' + event.data.repoOwner + '/' + event.data.repoName"


def resolve(text, data):
    return KeyTemplate.parse(text).resolve({"name": "test", "data": data})


def text_of(value):
    """What `event.data.a` gives for a value."""
    return resolve("event.data.a", {"a": value}).text


@pytest.mark.parametrize(
    ("installation", "text"),
    [
        ("48151623", "48151623/acme/web"),
        (12345678, "1.2345678e+07/acme/web"),
        (True, "true/acme/web"),
        (None, "NULL_VALUE/acme/web"),
        ("é", "é/acme/web"),
        ([1, None], "[1 <nil>]/acme/web"),
    ],
)
def test_the_main_key_is_the_reference_s(installation, text):
    data = {"installationId": installation, "repoOwner": "acme", "repoName": "web"}
    assert resolve(MAIN, data) == Key(text, "key")


def test_a_missing_field_is_left_out():
    assert resolve(MAIN, {"repoOwner": "acme", "repoName": "web"}) == Key("/acme/web", "key")


def test_a_key_of_nothing_known_is_absent():
    assert resolve("event.data.a + event.data.b", {}) == Key("false", "absent")
    assert resolve("event.data.a", {"a": False}) == Key("false", "absent")
    assert KeyTemplate.parse("event.data.a").resolve({}) == Key("false", "absent")


def test_false_of_two_missing_fields_is_added_to_what_follows():
    assert resolve("event.data.a + event.data.b + '/x'", {}) == Key("false/x", "key")


def test_what_does_not_add_up_is_an_error_until_it_meets_another_type():
    data = {"a": True, "b": False}
    assert resolve("event.data.a + event.data.b", data) == Key("<invalid>", "error")
    told = resolve("event.data.a + event.data.b + 'x'", data)
    assert told == Key("no such overload: _+_x", "key")
    assert resolve("event.data.a + event.data.a + event.data.b", data).text == (
        "no such overload: _+_false"
    )


def test_a_field_is_unknown_when_a_field_below_it_is():
    assert resolve("event.data.a + event.data.a.b", {"a": "x"}) == Key("false", "absent")
    assert resolve("event.data.a + event.data.a.b", {"a": {"b": "x"}}) == Key("map[b:x]x", "key")


def test_joined_arrays_print_their_nulls_another_way_than_one_alone():
    assert resolve("event.data.a + event.data.b", {"a": [None], "b": [[None]]}).text == (
        "[NULL_VALUE [<nil>]]"
    )
    assert resolve("event.data.a + event.data.b", {"a": [None], "b": []}).text == "[<nil>]"


def test_floats_add_at_every_step_as_ieee_754_has_it():
    data = {"a": 1e16, "b": 1.0, "c": 1.0}
    assert resolve("event.data.a + event.data.b + event.data.c", data).text == "1e+16"


def test_floats_that_add_beyond_their_range_are_infinite():
    assert resolve("event.data.a + event.data.a", {"a": -1.7e308}).text == "-Inf"
    assert resolve("event.data.a + event.data.a", {"a": 1.7e308}).text == "+Inf"


def test_escapes_count_only_where_vars_and_a_dot_are_mentioned():
    assert resolve(r"'a\nb'", {}).text == r"a\nb"
    assert resolve(r"event.data.vars .x + 'a\nb'", {}).text == r"a\nb"
    assert resolve(r"event.data.vars.x + 'a\nb'", {}).text == "a\nb"
    assert resolve(r"'vars.' + '\x000\u00e90\U0001F6420\1010\''", {}).text == "vars.\x000é0🙂0A0'"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (999999, "999999"),
        (1_000_000, "1e+06"),
        (2**53 + 1, "9.007199254740992e+15"),
        (2**70, "1.1805916207174113e+21"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-0.0, "-0"),
        (1234567.5, "1.2345675e+06"),
        (-100000.0, "-100000"),
        (5e-324, "5e-324"),
        (2.0**-24, "5.960464477539063e-08"),
    ],
)
def test_a_number_prints_as_go_s_float64(number, text):
    assert text_of(number) == text


def test_any_mapping_is_an_object_at_every_level():
    data = MappingProxyType({"a": ChainMap({"b": OrderedDict(c="x")})})
    event = MappingProxyType({"data": data})
    assert KeyTemplate.parse("event.data.a.b.c").resolve(event) == Key("x", "key")
    assert KeyTemplate.parse("event.data.a").resolve(event).text == "map[b:map[c:x]]"


def test_looking_a_field_up_does_not_create_it():
    data = defaultdict(dict)
    event = defaultdict(dict, data=data)
    assert KeyTemplate.parse("event.data.a.b + 'x'").resolve(event).text == "x"
    assert KeyTemplate.parse("event.data.a + 'x'").resolve({"data": data}).text == "x"
    assert not data
    assert KeyTemplate.parse("event.data.a + 'x'").resolve(event := defaultdict(dict)).text == "x"
    assert not event


def test_fields_of_an_object_print_in_the_order_of_their_bytes():
    value = {"b": 1, "é": 2, "B": 3, "\U0001f642": 4, "\uffff": 5, "": 6}
    assert text_of(value) == "map[:6 B:3 b:1 é:2 \uffff:5 \U0001f642:4]"


def test_a_subclass_of_a_json_type_is_what_it_holds():
    class Plan(StrEnum):
        PRO = "pro"

    class Level(IntEnum):
        HIGH = 3

    class Old(str, Enum):  # noqa: UP042 - what code written before StrEnum has
        NAME = "old"

    class Point(NamedTuple):
        x: int
        y: int

    assert text_of(Plan.PRO) == "pro"
    assert text_of(Old.NAME) == "old"
    assert text_of({Old.NAME: Old.NAME}) == "map[old:old]"
    assert text_of(Level.HIGH) == "3"
    assert text_of(Point(1, 2)) == "[1 2]"
    assert resolve("event.data.a + '/' + event.data.a", {"a": Old.NAME}).text == "old/old"
    assert type(text_of(Old.NAME)) is str


def test_a_lone_surrogate_becomes_the_replacement_character_and_a_pair_one_character():
    assert text_of("a\ud800b") == "a\ufffdb"
    assert text_of("\udc00\ud800") == "\ufffd\ufffd"
    assert text_of("\ud83d\ude42") == "🙂"
    assert text_of({"\ud800": "x"}) == "map[\ufffd:x]"
    assert (
        resolve("event.data.a + event.data.b", {"a": "\ud83d", "b": "\ude42"}).text == "\ufffd" * 2
    )


def test_names_that_become_equal_leave_the_last_value():
    assert text_of(dict(zip("\ud800\ud801", (1, 2), strict=True))) == "map[\ufffd:2]"


def test_a_nul_is_a_character_like_any_other():
    assert text_of("a\0b") == "a\0b"


def test_a_value_nested_a_thousand_deep_prints():
    deep = "x"
    for _ in range(1000):
        deep = [{"k": deep}]
    assert sys.getrecursionlimit() <= 1000
    assert text_of(deep) == "[map[k:" * 1000 + "x" + "]]" * 1000


def test_a_path_a_thousand_steps_long_resolves():
    deep = "x"
    for _ in range(1000):
        deep = {"k": deep}
    assert resolve("event.data" + ".k" * 1000, deep) == Key("x", "key")


class Unlike:
    """Something that JSON has no form for."""


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (float("nan"), "event.data.a is nan, which JSON has no form for"),
        (float("-inf"), "event.data.a is -inf, which JSON has no form for"),
        (10**400, "event.data.a is a number too large for a float64"),
        (
            datetime(2026, 1, 1, tzinfo=UTC),
            "event.data.a is of type datetime, which JSON has no form for",
        ),
        (Decimal("1.5"), "event.data.a is of type Decimal, which JSON has no form for"),
        (b"x", "event.data.a is of type bytes, which JSON has no form for"),
        ({1, 2}, "event.data.a is of type set, which JSON has no form for"),
        ([{"b": Unlike()}], "event.data.a[0].b is of type Unlike, which JSON has no form for"),
        ({"b": {1: 2}}, "event.data.a.b has a field name of type int, not a text"),
    ],
)
def test_what_is_not_json_is_an_error_that_names_its_place(value, told):
    with pytest.raises(EventError) as error:
        resolve("'x' + event.data.a", {"a": value})
    assert str(error.value) == told


def test_a_step_into_what_is_not_json_is_an_error_too():
    with pytest.raises(EventError, match=r"^event\.data\.a is of type Unlike, "):
        resolve("event.data.a.b", {"a": Unlike()})
    with pytest.raises(EventError, match=r"^event\.data is of type Unlike, "):
        resolve("event.data.a", Unlike())


def test_an_event_that_is_no_mapping_is_an_error():
    with pytest.raises(EventError, match=r"^event is of type list, but an event is a mapping$"):
        KeyTemplate.parse("event.data.a").resolve([])


def test_a_value_that_nests_deep_is_read_and_a_deeper_one_is_an_error():
    value: list[object] = []
    for _ in range(MAX_DEPTH - 2):
        value = [value]
    assert text_of(value) == "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    with pytest.raises(EventError, match=f"nests deeper than {MAX_DEPTH:,} levels"):
        text_of([value])


def test_a_value_that_holds_itself_is_an_error():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(EventError, match=f"nests deeper than {MAX_DEPTH:,} levels"):
        text_of(endless)


def test_what_a_key_does_not_read_may_be_anything():
    assert resolve("event.data.a", {"a": "x", "b": Unlike(), 3: float("nan")}).text == "x"


def test_a_step_below_a_value_without_fields_is_missing():
    for value in ("x", 1.5, True, None, [], (1,)):
        assert resolve("event.data.a.b + 'x'", {"a": value}) == Key("x", "key")
