"""The macros: calls that the reference rewrites, and that give names to what they run over."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobspec.cel.tree import Call


class Macro(Enum):
    """A macro by what it comes to."""

    HAS = "whether a field is there"
    QUANTIFIER = "a boolean, from a boolean for each element"
    COUNT = "a boolean, from how many elements say yes"
    MAP = "a list, with a value for each element"
    FILTER = "a list, of the elements that say yes"


_RECEIVER_MACROS = {
    ("all", 2): Macro.QUANTIFIER,
    ("exists", 2): Macro.QUANTIFIER,
    ("exists_one", 2): Macro.COUNT,
    ("existsOne", 2): Macro.COUNT,
    ("map", 2): Macro.MAP,
    ("map", 3): Macro.MAP,
    ("filter", 2): Macro.FILTER,
}
ARITIES: dict[str, tuple[int, ...]] = {
    "has": (1,),
    "all": (2,),
    "exists": (2,),
    "exists_one": (2,),
    "existsOne": (2,),
    "map": (2, 3),
    "filter": (2,),
}


def macro_of(call: Call) -> Macro | None:
    """Return the macro that a call is, by its name, its arguments and whether it has a target."""
    if call.target is not None:
        return _RECEIVER_MACROS.get((call.function, len(call.arguments)))
    rooted = call.span.start < call.function_span.start  # `.has(x)` is a call of a function
    is_has = call.function == "has" and len(call.arguments) == 1 and not rooted
    return Macro.HAS if is_has else None
