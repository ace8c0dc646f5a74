"""Declarations in Python, written out as the text of a spec file.

A declaration goes the same way as a file: it is written out and read, and every finding has a
place in that text, so that a caret still stands inside a key.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import timedelta
from typing import TypeGuard, cast

from jobspec.durations import format_duration
from jobspec.spec.models import Job, file_name, file_names

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)  # a field; any other name is put in quotes


class Declarations(ABC):
    """Jobs declared in Python, one after another: what `jobspec.Registry` is to those below it."""

    @abstractmethod
    def __iter__(self) -> Iterator[Job]:
        """Return the jobs in the order they were declared."""


def written(job: Job) -> str:
    """Return a job as the YAML of a spec file, without a handler that is a function.

    Raises `TypeError` for a value that no spec can hold, such as a date or a function.
    """
    try:
        plain = _plain(job)
    except RecursionError:
        raise TypeError("a spec can't hold a value that holds itself, or nests as deep") from None
    return "".join(f"{line}\n" for line in ["jobs:", *_item(plain)])


def _plain(value: object) -> object:
    """Return a value as a file would hold it, without the fields that were left out."""
    if is_dataclass(value) and not isinstance(value, type):
        names = file_names(type(value))
        given = {name: getattr(value, field) for name, field in names.items()}
        if isinstance(value, Job) and callable(value.handler):
            del given["handler"]
        return _filled(given)
    if isinstance(value, Mapping):
        fields = cast("Mapping[object, object]", value)
        return _filled({file_name(str(name)): one for name, one in fields.items()})
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(one) for one in cast("Sequence[object]", value)]
    if _is_error_class(value):
        return f"{value.__module__}:{value.__qualname__}"
    return format_duration(value) if isinstance(value, timedelta) else value


def _filled(values: Mapping[str, object]) -> dict[str, object]:
    return {name: _plain(one) for name, one in values.items() if one is not None}


def _is_error_class(value: object) -> TypeGuard[type[BaseException]]:
    return isinstance(value, type) and issubclass(value, BaseException)


def _lines(value: object) -> Iterator[str]:
    """Yield the lines of a value that stands on lines of its own."""
    if isinstance(value, dict):
        for name, one in cast("dict[str, object]", value).items():
            yield from _field(name, one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _item(one)
    else:
        yield _scalar(value)


def _field(name: str, value: object) -> Iterator[str]:
    shown = name if _NAME.fullmatch(name) else _scalar(name)
    if value and isinstance(value, dict | list):
        yield f"{shown}:"
        yield from (f"  {line}" for line in _lines(cast("object", value)))
    else:
        yield f"{shown}: {_scalar(value)}"


def _item(value: object) -> Iterator[str]:
    first, *rest = _lines(value) if value else ["{}"]
    yield f"- {first}"
    yield from (f"  {line}" for line in rest)


def _scalar(value: object) -> str:
    """Return a value in JSON, which YAML reads the same way."""
    try:
        return json.dumps(value, ensure_ascii=not _is_plain(value))
    except TypeError:
        message = f"a spec can't hold a value of the type {type(value).__name__}"
        raise TypeError(message) from None
    except ValueError:  # Python writes no number of more than 4,300 digits
        raise TypeError("a spec can't hold a number of so many digits") from None


def _is_plain(value: object) -> bool:
    """Tell whether a value can stand in a file as it is: lone surrogates, for one, can't."""
    return isinstance(value, str) and value.isprintable()
