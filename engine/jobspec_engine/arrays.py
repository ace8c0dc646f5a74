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
    from collections.abc import Callable, Sequence
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


class Texts(list["str | None"]):
    """A column of text."""


class Digests(list["bytes | None"]):
    """A column of bytea."""


class Integers(list["int | None"]):
    """A column of integer."""


class BigIntegers(list["int | None"]):
    """A column of bigint."""


class Booleans(list["bool | None"]):
    """A column of boolean."""


class Intervals(list["timedelta | None"]):
    """A column of interval."""


class Uuids(list["UUID | None"]):
    """A column of uuid."""


class _ColumnDumper(Dumper):
    """Writes a column in Postgres's binary format; subclasses name the type and write one value."""

    format = Format.BINARY
    element_oid: ClassVar[int]

    def dump(self, obj: Sequence[Any]) -> bytes:
        """Return a column as a binary array."""
        if not obj:
            return _EMPTY(0, 0, self.element_oid)
        has_null = None in obj
        header = _HEADER(1, has_null, self.element_oid, len(obj), 1)
        return header + (_with_nulls(obj, self.values) if has_null else self.values(obj))

    @abstractmethod
    def values(self, column: Sequence[Any]) -> bytes:
        """Return values, none of them null, each with its length before it."""


class _TextsDumper(_ColumnDumper):
    oid, element_oid = 1009, 25

    def __init__(self, cls: type, context: AdaptContext | None = None) -> None:
        super().__init__(cls, context)
        self._encoding = self.connection.info.encoding if self.connection else "utf-8"

    def values(self, column: Sequence[str]) -> bytes:
        encoding = self._encoding
        return _sized([text.encode(encoding) for text in column])


class _DigestsDumper(_ColumnDumper):
    oid, element_oid = 1001, 17

    def values(self, column: Sequence[bytes]) -> bytes:
        return _sized(column)


class _IntegersDumper(_ColumnDumper):
    oid, element_oid = 1007, 23

    def values(self, column: Sequence[int]) -> bytes:
        return _packed("i", 4, column)


class _BigIntegersDumper(_ColumnDumper):
    oid, element_oid = 1016, 20

    def values(self, column: Sequence[int]) -> bytes:
        return _packed("q", 8, column)


class _BooleansDumper(_ColumnDumper):
    oid, element_oid = 1000, 16

    def values(self, column: Sequence[bool]) -> bytes:
        return _packed("?", 1, column)


class _IntervalsDumper(_ColumnDumper):
    oid, element_oid = 1187, 1186

    def values(self, column: Sequence[timedelta]) -> bytes:
        pack = Struct("!iqii").pack
        return b"".join(
            pack(16, one.seconds * 1_000_000 + one.microseconds, one.days, 0) for one in column
        )


class _UuidsDumper(_ColumnDumper):
    oid, element_oid = 2951, 2950

    def values(self, column: Sequence[UUID]) -> bytes:
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


def _with_nulls(column: Sequence[Any], values: Callable[[Sequence[Any]], bytes]) -> bytes:
    if column.count(None) == len(column):
        return _NULL * len(column)
    return b"".join(_NULL if value is None else values((value,)) for value in column)


_DUMPERS: dict[type, type[Dumper]] = {
    Texts: _TextsDumper,
    Digests: _DigestsDumper,
    Integers: _IntegersDumper,
    BigIntegers: _BigIntegersDumper,
    Booleans: _BooleansDumper,
    Intervals: _IntervalsDumper,
    Uuids: _UuidsDumper,
}

for _kind, _dumper in _DUMPERS.items():
    psycopg.adapters.register_dumper(_kind, _dumper)


def teach(connection: BaseConnection[Any]) -> None:
    """Let a connection know columns that was perhaps made before this module was there."""
    if connection.adapters.get_dumper(Texts, PyFormat.AUTO) is not _TextsDumper:
        for kind, dumper in _DUMPERS.items():
            connection.adapters.register_dumper(kind, dumper)
