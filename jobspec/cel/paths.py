"""The paths that an expression reads: `event.data.plan`, with the place of each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobspec.cel.functions import ROOTS
from jobspec.cel.macros import Macro, macro_of
from jobspec.cel.tree import Call, Index, Literal, Name, Node, Select, bare, children

if TYPE_CHECKING:
    from jobspec.source import Span


@dataclass(frozen=True, slots=True)
class Step:
    """One step into a value: the name of the field, and where it is written."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Path:
    """A root (`event`, `async` or `vars`) and the steps from it, as far as they are plain."""

    root: str
    steps: tuple[Step, ...]
    span: Span


def paths_of(root: Node) -> tuple[Path, ...]:
    """Return every path that a tree reads from an event, in reading order.

    A step may be written `.name` or `["name"]`. A path ends before an index that is worked out,
    and before a method. Names that a macro gives to elements are no roots.
    """
    found: list[Path] = []
    waiting: list[tuple[Node, frozenset[str]]] = [(root, frozenset())]
    while waiting:
        node, hidden = waiting.pop()
        path = _path(node, hidden)
        if path is not None:
            found.append(path)
            continue
        inside = [(child, hidden) for child in children(node)]
        if isinstance(node, Call):
            inside = _inside_call(node, hidden)
        waiting.extend(reversed(inside))
    return tuple(found)


def _inside_call(call: Call, hidden: frozenset[str]) -> list[tuple[Node, frozenset[str]]]:
    macro = macro_of(call)
    if macro is None:
        return [(child, hidden) for child in children(call)]
    if macro is Macro.HAS or call.target is None:
        return [(bare(call.arguments[0]), hidden)]
    variable, *bodies = call.arguments
    named = bare(variable)
    within = hidden | {named.name} if isinstance(named, Name) else hidden
    return [(call.target, hidden), *((body, within) for body in bodies)]


def _path(node: Node, hidden: frozenset[str]) -> Path | None:
    steps: list[Step] = []
    span = node.span
    while (step := _step(node)) is not None:
        steps.append(step[1])
        node = step[0]
    if isinstance(node, Name) and node.name in ROOTS and node.name not in hidden:
        return Path(node.name, tuple(reversed(steps)), span)
    return None


def _step(node: Node) -> tuple[Node, Step] | None:
    match node:
        case Select(target=target, field=field, field_span=span):
            return bare(target), Step(field, span)
        case Index(target=target, index=Literal(kind="string", text=text, span=span)):
            plain = text[1:-1]
            return (bare(target), Step(plain, span)) if _is_plain(text) else None
        case _:
            return None


def _is_plain(text: str) -> bool:
    return text[0] in "'\"" and "\\" not in text and not text.startswith(("'''", '"""'))
