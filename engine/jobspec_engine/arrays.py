"""Columns on their way to the database, as Postgres's binary arrays.

What psycopg makes of a list takes both sides longer than the insert of its rows: it writes text,
value by value, which Postgres reads character by character. These are its lists with a type of
their own, so that a parameter says what it holds, also where all of it is null.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import psycopg
from psycopg.adapt import Dumper, PyFormat
from psycopg.pq import Format

from jobspec_engine.lengths import interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import timedelta
    from uuid import UUID

    from psycopg import BaseConnection
    from psycopg.abc import AdaptContext

# One dimension, whether there are nulls, the type of the elements, how many, the first's number.
_HEADER = Struct("!iiIii").pack
_EMPTY = Struct("!iiI").pack
_LENGTH = Struct("!i").pack
_NULL = _LENGTH(-1)

# Values of a fixed length, which is told before.
_INTEGER = Struct("!ii").pack
_BIG_INTEGER = Struct("!iq").pack
_BOOLEAN = Struct("!i?").pack

Value = TypeVar("Value")


class Column(list["Value | None"]):
    """Values of a column and their binary array, `written` at once: not when it is to be sent.

    Subclasses name the types and write values.
    """

    __slots__ = ("written",)

    oid: ClassVar[int]
    element_oid: ClassVar[int]

    def __init__(self, values: Iterable[Value | None]) -> None:
        super().__init__(values)
        self.written = self._array()

    def _array(self) -> bytes:
        count = len(self)
        if not count:
            return _EMPTY(0, 0, self.element_oid)
        first = self[0]
        if count == 1 or self.count(first) == count:  # such as the name of most events
            header = _HEADER(1, first is None, self.element_oid, count, 1)
            return header + (_NULL if first is None else self._value(first)) * count
        has_null = None in self
        header = _HEADER(1, has_null, self.element_oid, count, 1)
        return header + (
            b"".join(map(self._value_or_null, self)) if has_null else self._values(self)
        )

    def _value_or_null(self, value: Value | None) -> bytes:
        return _NULL if value is None else self._value(value)

    def _values(self, column: Sequence[Any]) -> bytes:
        """Return values, none of them null."""
        return b"".join(map(self._value, column))

    @staticmethod
    @abstractmethod
    def _value(value: Any) -> bytes:
        """Return a value with its length before it."""


class Digests(Column[bytes]):
    """A column of bytea."""

    oid, element_oid = 1001, 17

    @staticmethod
    def _value(value: bytes) -> bytes:
        return _with_length(value)

    def _values(self, column: Sequence[bytes]) -> bytes:
        return _with_lengths(column)


class Texts(Column[str]):
    """A column of text."""

    oid, element_oid = 1009, 25

    @staticmethod
    def _value(value: str) -> bytes:
        return _with_length(value.encode())

    def _values(self, column: Sequence[str]) -> bytes:
        return _with_lengths([text.encode() for text in column])

    def encoded(self, encoding: str) -> bytes:
        """Return the array in another encoding than UTF-8."""
        return _Encoded(None if text is None else text.encode(encoding) for text in self).written


class _Encoded(Digests):
    """A column of text that is encoded."""

    oid, element_oid = Texts.oid, Texts.element_oid


class Integers(Column[int]):
    """A column of integer."""

    oid, element_oid = 1007, 23

    @staticmethod
    def _value(value: int) -> bytes:
        return _INTEGER(4, value)


class BigIntegers(Column[int]):
    """A column of bigint."""

    oid, element_oid = 1016, 20

    @staticmethod
    def _value(value: int) -> bytes:
        return _BIG_INTEGER(8, value)


class Booleans(Column[bool]):
    """A column of boolean."""

    oid, element_oid = 1000, 16

    @staticmethod
    def _value(value: object) -> bytes:
        return _BOOLEAN(1, value)


class Intervals(Column["timedelta"]):
    """A column of interval."""

    oid, element_oid = 1187, 1186

    @staticmethod
    def _value(value: timedelta) -> bytes:
        return _with_length(interval(value))


class Uuids(Column["UUID"]):
    """A column of uuid."""

    oid, element_oid = 2951, 2950

    @staticmethod
    def _value(value: UUID) -> bytes:
        return _with_length(value.bytes)

    def _values(self, column: Sequence[UUID]) -> bytes:
        written: dict[int, bytes] = {}  # most are the same object, which takes long to write
        for value in column:
            if id(value) not in written:
                written[id(value)] = self._value(value)
        return b"".join([written[id(value)] for value in column])


def _with_length(value: bytes) -> bytes:
    return _LENGTH(len(value)) + value


def _with_lengths(values: Sequence[bytes]) -> bytes:
    lengths = map(_LENGTH, map(len, values))
    return b"".join(chain.from_iterable(zip(lengths, values, strict=True)))


class _ColumnDumper(Dumper):
    """Hands out what was written."""

    format = Format.BINARY

    def __init__(self, cls: type[Column[Any]], context: AdaptContext | None = None) -> None:
        super().__init__(cls, context)
        self.oid = cls.oid
        self._encoding = self.connection.info.encoding if self.connection else "utf-8"

    def dump(self, obj: Column[Any]) -> bytes:
        """Return a column as a binary array, its text in the encoding of the connection."""
        if self._encoding != "utf-8" and isinstance(obj, Texts):
            return obj.encoded(self._encoding)
        return obj.written


_KINDS = (Texts, Digests, Integers, BigIntegers, Booleans, Intervals, Uuids)

for _kind in _KINDS:
    psycopg.adapters.register_dumper(_kind, _ColumnDumper)


def teach(connection: BaseConnection[Any]) -> None:
    """Let a connection know columns that was perhaps made before this module was there."""
    if connection.adapters.get_dumper(Texts, PyFormat.AUTO) is not _ColumnDumper:
        for kind in _KINDS:
            connection.adapters.register_dumper(kind, _ColumnDumper)
