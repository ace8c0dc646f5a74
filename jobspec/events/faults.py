"""How findings about the fields of events are worded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec.events.lookup import DeadEnd, kinds
from jobspec.keys.fault import Fault, quoted
from jobspec.phrases import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobspec.source import Span

_MOST_LISTED = 8


def dead_end(path: Sequence[str], found: DeadEnd, event: str, span: Span) -> Fault:
    """Tell of a path below `event.data` that never leads anywhere."""
    names = ["event.data", *path]
    if found.kind == "undeclared":
        field = ".".join(names[: found.step + 2])
        message = f"`{field}` is not a field of event {quoted(event)}"
        return Fault("JS203", message, span, _instead(path[found.step], found.known))
    parent = ".".join(names[: found.step + 1])
    what = joined(kinds(found.shapes), "or")
    name = path[found.step]
    message = f"`{parent}` of event {quoted(event)} is {what}, so it has no field {quoted(name)}"
    return Fault("JS204", message, span, "name a field that the event has")


def unknown_part(name: str, span: Span, known: Sequence[str]) -> Fault:
    """Tell of `event.dta`, which no event has, whatever its schema says."""
    return Fault("JS215", f"an event has no part {quoted(name)}", span, _instead(name, known))


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Return what was probably meant, where something comes near."""
    from difflib import get_close_matches  # noqa: PLC0415  only needed where something is wrong

    folded = {_folded(one): one for one in known}
    found = get_close_matches(_folded(name), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def _folded(name: str) -> str:
    return name.replace("_", "").casefold()


def _instead(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known)
    if near is not None:
        return f"did you mean {quoted(near)}?"
    if not known:
        return "declare the field in the schema of the event"
    if len(known) > _MOST_LISTED:
        return "name one of the fields that the schema of the event declares"
    return f"there {'is' if len(known) == 1 else 'are'} {joined([quoted(one) for one in known])}"
