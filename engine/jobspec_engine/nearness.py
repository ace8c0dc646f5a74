"""What was probably meant by a name that nothing goes by."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_MOST_LISTED = 5


def did_you_mean(name: str, known: Collection[str]) -> str | None:
    """Return `` did you mean `x`? `` for the known name that is nearest; None: none is near."""
    folded = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), folded, n=1)
    return f"did you mean `{folded[near[0]]}`?" if near else None


def listed(names: Collection[str], most: int = _MOST_LISTED) -> str:
    """Return names in their order, of more than `most` the first and how many more there are."""
    first = [f"`{one}`" for one in sorted(names)[:most]]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more:,} more" if more else "")


def near_or_listed(name: str, known: Collection[str]) -> str:
    """Return what helps with a name that is not known: the nearest, or else which there are."""
    return did_you_mean(name, known) or (f"there are {listed(known)}" if known else "there is none")
