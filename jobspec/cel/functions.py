"""The functions and operators that the reference declares, with the types they take and give.

They are cel-go's standard library, with seven operators loosened and eight functions added, as the
reference does for events, whose values have no types at registration.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobspec.cel.types import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    type_of,
)

_A, _B = Type("?A"), Type("?B")
_ANY_LIST, _ANY_MAP = list_of(_A), map_of(_A, _B)


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function: on a value or not, with these types, for that one."""

    takes: tuple[Type, ...]
    gives: Type
    is_method: bool = False


def _function(gives: Type, *takes: tuple[Type, ...]) -> tuple[Overload, ...]:
    return tuple(Overload(one, gives) for one in takes)


def _method(gives: Type, *takes: tuple[Type, ...]) -> tuple[Overload, ...]:
    return tuple(Overload(one, gives, is_method=True) for one in takes)


def _same(*types: Type) -> tuple[Overload, ...]:
    return tuple(Overload((one, one), one) for one in types)


_LOOSE = _function(BOOLEAN, (DYN, DYN))
_SIZED = ((BYTES,), (_ANY_LIST,), (_ANY_MAP,), (STRING,))
_OF_TIME = _method(INT, (TIMESTAMP,), (TIMESTAMP, STRING))
_OF_TIME_OR_DURATION = (*_OF_TIME, *_method(INT, (DURATION,)))

OPERATORS: dict[str, tuple[Overload, ...]] = {
    "?:": _function(_A, (BOOLEAN, _A, _A)),
    "&&": _function(BOOLEAN, (BOOLEAN, BOOLEAN)),
    "||": _function(BOOLEAN, (BOOLEAN, BOOLEAN)),
    "!_": _function(BOOLEAN, (BOOLEAN,)),
    "-_": (Overload((DOUBLE,), DOUBLE), Overload((INT,), INT)),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), _LOOSE),
    "+": _function(DYN, (DYN, DYN)),
    "-": (
        *_same(DOUBLE, DURATION, INT, UINT),
        Overload((TIMESTAMP, DURATION), TIMESTAMP),
        Overload((TIMESTAMP, TIMESTAMP), DURATION),
    ),
    "*": _same(DOUBLE, INT, UINT),
    "/": _same(DOUBLE, INT, UINT),
    "%": _same(INT, UINT),
    "in": _function(BOOLEAN, (_A, _ANY_LIST), (_A, _ANY_MAP)),
    "[]": (Overload((_ANY_LIST, INT), _A), Overload((_ANY_MAP, _A), _B)),
}

FUNCTIONS: dict[str, tuple[Overload, ...]] = {
    "size": (*_function(INT, *_SIZED), *_method(INT, *_SIZED)),
    "type": _function(type_of(_A), (_A,)),
    "dyn": _function(DYN, (_A,)),
    "bool": _function(BOOLEAN, (BOOLEAN,), (STRING,)),
    "bytes": _function(BYTES, (BYTES,), (STRING,)),
    "double": _function(DOUBLE, (DOUBLE,), (INT,), (STRING,), (UINT,)),
    "duration": _function(DURATION, (DURATION,), (INT,), (STRING,)),
    "int": _function(INT, (INT,), (DOUBLE,), (DURATION,), (STRING,), (TIMESTAMP,), (UINT,)),
    "string": _function(
        STRING,
        *((one,) for one in (STRING, BOOLEAN, BYTES, DOUBLE, DURATION, INT, TIMESTAMP, UINT)),
    ),
    "timestamp": _function(TIMESTAMP, (TIMESTAMP,), (INT,), (STRING,)),
    "uint": _function(UINT, (UINT,), (DOUBLE,), (INT,), (STRING,)),
    "contains": _method(BOOLEAN, (STRING, STRING)),
    "endsWith": _method(BOOLEAN, (STRING, STRING)),
    "startsWith": _method(BOOLEAN, (STRING, STRING)),
    "matches": (*_function(BOOLEAN, (STRING, STRING)), *_method(BOOLEAN, (STRING, STRING))),
    "getFullYear": _OF_TIME,
    "getMonth": _OF_TIME,
    "getDayOfYear": _OF_TIME,
    "getDayOfMonth": _OF_TIME,
    "getDate": _OF_TIME,
    "getDayOfWeek": _OF_TIME,
    "getHours": _OF_TIME_OR_DURATION,
    "getMinutes": _OF_TIME_OR_DURATION,
    "getSeconds": _OF_TIME_OR_DURATION,
    "getMilliseconds": _OF_TIME_OR_DURATION,
    # The reference's own.
    "lowercase": _function(STRING, (STRING,)),
    "uppercase": _function(STRING, (STRING,)),
    "b64decode": _function(STRING, (STRING,)),
    "json_parse": _function(DYN, (STRING,)),
    "date": _function(TIMESTAMP, (DYN,)),
    "now": _function(TIMESTAMP, ()),
    "now_plus": _function(TIMESTAMP, (STRING,)),
    "now_minus": _function(TIMESTAMP, (STRING,)),
}

ROOTS = ("event", "async", "vars")
"""The names that every expression of the reference can read. Each is a map of anything."""

_TYPE_NAMES = (BOOLEAN, BYTES, DOUBLE, INT, STRING, UINT, TIMESTAMP, DURATION, Type("null_type"))
MESSAGES = frozenset(
    f"google.protobuf.{name}"
    for name in (
        *("Any", "Duration", "Empty", "ListValue", "Struct", "Timestamp", "Value"),
        *("BoolValue", "BytesValue", "DoubleValue", "FloatValue", "StringValue"),
        *("Int32Value", "Int64Value", "UInt32Value", "UInt64Value"),
    )
)
"""The types that can be written as `type{field: value}`; what fields they have is not checked."""

NAMES: dict[str, Type] = {
    **dict.fromkeys(MESSAGES, type_of(DYN)),
    **dict.fromkeys(ROOTS, map_of(STRING, DYN)),
    **{one.name: type_of(one) for one in _TYPE_NAMES},
    "list": type_of(list_of(DYN)),
    "map": type_of(map_of(DYN, DYN)),
    "type": type_of(Type("type")),
}
