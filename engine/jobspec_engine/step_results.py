"""Results of steps: JSON on their way into a memo, and the type they were on their way out."""

from __future__ import annotations

import inspect
from collections.abc import Hashable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import PydanticUserError, TypeAdapter

from jobspec_engine.errors import ResultError, StepError
from jobspec_engine.payload import encode

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_RESULT_BYTES = 1 << 20


@lru_cache(maxsize=1024)
def _adapter(wanted: Any) -> TypeAdapter[Any]:
    """Return what pydantic makes of a type, which takes it longer than a loop of steps should."""
    adapter: TypeAdapter[Any] = TypeAdapter(wanted)
    adapter.core_schema.get("type")  # raises where a name in the type is unknown
    return adapter


class ResultType:
    """What the result of a step is: any JSON, or what a type says.

    Raises `StepError` for a type that pydantic can't make anything of.
    """

    def __init__(self, step: str, wanted: Any) -> None:
        self._step = step
        self._any = wanted is Any
        make = _adapter if isinstance(wanted, Hashable) else _adapter.__wrapped__
        try:
            self._adapter = make(wanted)
        except PydanticUserError as error:
            raise StepError(f"the type of step `{step}` has no form in JSON: {error}") from error

    def encode(self, value: object) -> str:
        """Return a result as JSON text.

        Raises `ResultError` for what is not JSON, is not of this type or is too large.
        """
        name = f"the result of step `{self._step}`"
        try:
            plain = (
                value
                if self._any
                else self._adapter.dump_python(value, mode="json", warnings="error")
            )
        except Exception as error:  # a type's own serializer may raise any
            raise ResultError(f"{name} is not of its type: {error}") from error
        text = encode(plain, name, ResultError)
        if len(text) > MAX_RESULT_BYTES:
            raise ResultError(
                f"{name} has {len(text):,} bytes as JSON, and {MAX_RESULT_BYTES:,} can be kept:"
                " keep it elsewhere, and return where"
            )
        self._require_readable(name, text)
        return text

    def decode(self, text: str | None) -> Any:
        """Return the result that a memo keeps. Raises `ResultError` if it is not of this type."""
        try:
            return self._read(text or "null")
        except Exception as error:  # a type's own validator may raise any
            raise ResultError(
                f"what is kept of step `{self._step}` is not of its type any more: {error}"
            ) from error

    def _read(self, text: str) -> Any:
        """Return what JSON text is as this type. It has names where the type may have aliases."""
        return self._adapter.validate_json(text, by_alias=False, by_name=True)

    def _require_readable(self, name: str, text: str) -> None:
        try:
            self._read(text)
        except Exception as error:
            raise ResultError(
                f"{name} does not come back from JSON as its type: {error}"
            ) from error


def type_returned(step: str, fn: Callable[..., object]) -> Any:
    """Return what a step's function says that it returns; anything, if it says nothing.

    Raises `StepError` for an annotation that can't be resolved.
    """
    while isinstance(fn, partial):
        fn = fn.func
    try:
        return _returned(fn if inspect.isroutine(fn) else type(fn).__call__)
    except Exception as error:
        raise StepError(
            f"the return annotation of step `{step}` can't be resolved ({error}):"
            " import what it names, or say `type=`"
        ) from error


@lru_cache(maxsize=1024)
def _returned(routine: Callable[..., object]) -> Any:
    annotation = getattr(routine, "__annotations__", {}).get("return", Any)
    return get_type_hints(_returning(annotation), getattr(routine, "__globals__", {}))["return"]


def _returning(annotation: object) -> Callable[[], None]:
    """Return a function with this annotation, and no other that might not be resolved."""

    def stub() -> None: ...

    stub.__annotations__ = {"return": annotation}
    return stub
