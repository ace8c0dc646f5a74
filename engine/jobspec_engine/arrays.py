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

Value = TypeVar("Value")


class Column(list["Value | None"]):
    """Values of a column and their binary array, `written` at once: not when it is to be sent.

    Subclasses name the types and write values.
    """

    oid: ClassVar[int]
    element_oid: ClassVar[int]

    def __init__(self, values: Iterable[Value | None]) -> None:
        super().__init__(values)
        self.written = self._array()

    def _array(self) -> bytes:
        if not self:
            return _EMPTY(0, 0, self.element_oid)
        has_null = None in self
        header = _HEADER(1, has_null, self.element_oid, len(self), 1)
        if self.count(self[0]) == len(self):  # such as the name of most events
            return header + self._value(self[0]) * len(self)
        return header + (b"".join(map(self._value, self)) if has_null else self._values(self))

    def _value(self, value: Value | None) -> bytes:
        return _NULL if value is None else self._values((value,))

    @abstractmethod
    def _values(self, column: Sequence[Any]) -> bytes:
        """Return values, none of them null, each with its length before it."""


class Texts(Column[str]):
    """A column of text."""

    oid, element_oid = 1009, 25

    def __init__(self, values: Iterable[str | None], encoding: str = "utf-8") -> None:
        self._encoding = encoding
        super().__init__(values)

    def _values(self, column: Sequence[str]) -> bytes:
        encoding = self._encoding
        return _sized([text.encode(encoding) for text in column])


class Digests(Column[bytes]):
    """A column of bytea."""

    oid, element_oid = 1001, 17

    def _values(self, column: Sequence[bytes]) -> bytes:
        return _sized(column)


class Integers(Column[int]):
    """A column of integer."""

    oid, element_oid = 1007, 23

    def _values(self, column: Sequence[int]) -> bytes:
        return _packed("i", 4, column)


class BigIntegers(Column[int]):
    """A column of bigint."""

    oid, element_oid = 1016, 20

    def _values(self, column: Sequence[int]) -> bytes:
        return _packed("q", 8, column)


class Booleans(Column[bool]):
    """A column of boolean."""

    oid, element_oid = 1000, 16

    def _values(self, column: Sequence[bool]) -> bytes:
        return _packed("?", 1, column)


class Intervals(Column["timedelta"]):
    """A column of interval."""

    oid, element_oid = 1187, 1186

    def _values(self, column: Sequence[timedelta]) -> bytes:
        pack = Struct("!iqii").pack
        return b"".join(
            pack(16, one.seconds * 1_000_000 + one.microseconds, one.days, 0) for one in column
        )


class Uuids(Column["UUID"]):
    """A column of uuid."""

    oid, element_oid = 2951, 2950

    def _values(self, column: Sequence[UUID]) -> bytes:
        written: dict[int, bytes] = {}  # most are the same object, which takes long to write
        return b"".join([written.get(id(one)) or _uuid(one, written) for one in column])


def _uuid(value: UUID, written: dict[int, bytes]) -> bytes:
    return written.setdefault(id(value), _LENGTH(16) + value.bytes)


def _sized(values: Sequence[bytes]) -> bytes:
    lengths = map(_LENGTH, map(len, values))
    return b"".join(chain.from_iterable(zip(lengths, values, strict=True)))


def _packed(code: str, size: int, column: Sequence[int]) -> bytes:
    pack = Struct(f"!i{code}").pack
    return b"".join([pack(size, value) for value in column])


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
            return Texts(obj, self._encoding).written
        return obj.written


_KINDS = (Texts, Digests, Integers, BigIntegers, Booleans, Intervals, Uuids)

for _kind in _KINDS:
    psycopg.adapters.register_dumper(_kind, _ColumnDumper)


def teach(connection: BaseConnection[Any]) -> None:
    """Let a connection know columns that was perhaps made before this module was there."""
    if connection.adapters.get_dumper(Texts, PyFormat.AUTO) is not _ColumnDumper:
        for kind in _KINDS:
            connection.adapters.register_dumper(kind, _ColumnDumper)
