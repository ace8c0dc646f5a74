"""Arguments of the classes that specs are written with in Python, and help with wrong ones."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache, wraps
from typing import TYPE_CHECKING, TypeVar

from jobspec.spec.wording import listed, suggestion

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Model = TypeVar("Model")


def by_name(model: type[Model]) -> type[Model]:
    """Let a dataclass say which field was probably meant, where it is given one it doesn't have.

    It raises `TypeError`, as Python's own `__init__` does.
    """
    build = model.__init__
    known = tuple(one.name for one in fields(model))  # type: ignore[arg-type]
    needed = required(model)  # type: ignore[arg-type]

    @wraps(build)
    def init(self: Model, *unnamed: object, **given: object) -> None:
        if unnamed:
            raise TypeError(f"the fields of `{model.__name__}` are given by their names")
        require_fields(f"`{model.__name__}`", given, known, needed)
        build(self, **given)

    model.__init__ = init  # type: ignore[assignment]  # mypy takes no function for a method
    return model


@cache
def required(model: type) -> frozenset[str]:
    """Return the fields of a dataclass that have no default."""
    return frozenset(one.name for one in fields(model) if one.default is MISSING)


def require_fields(
    what: str, given: Collection[str], known: Sequence[str], needed: Collection[str]
) -> None:
    """Raise `TypeError` for a field that is not known, or that is needed and not given.

    `what` is whose fields they are, such as `a job`.
    """
    for name in given:
        if name not in known:
            advice = suggestion(name, tuple(known)) or f"it has {listed(tuple(known), 'and')}"
            raise TypeError(f"`{name}` is not a field of {what}: {advice}")
    missing = tuple(name for name in known if name in needed and name not in given)
    if missing:
        raise TypeError(f"{what} needs {listed(missing, 'and')}")
