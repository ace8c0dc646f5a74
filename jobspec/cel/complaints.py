"""What is said of names, functions and operands that don't fit."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from jobspec.cel.findings import Findings, shorten
from jobspec.cel.functions import FUNCTIONS, NAMES, ROOTS
from jobspec.cel.macros import ARITIES
from jobspec.cel.tree import Binary, Call, Unary
from jobspec.cel.types import STRING
from jobspec.cel.words import a_container, a_value, counted, operands
from jobspec.phrases import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobspec.cel.types import Type
    from jobspec.source import Span

_LITERALS = {"True": "true", "False": "false", "None": "null", "nil": "null", "undefined": "null"}
_FUNCTIONS_ELSEWHERE = {
    "len": "size",
    "length": "size",
    "includes": "contains",
    "lower": "lowercase",
    "toLowerCase": "lowercase",
    "upper": "uppercase",
    "toUpperCase": "uppercase",
    "test": "matches",
    "some": "exists",
    "every": "all",
}
_HYPHEN = 'a `-` subtracts; a field with a hyphen in its name is read as `["a-b"]`'
_OF_EVENT = ("data", "id", "name", "ts", "user", "v")
_ARITHMETIC = {
    "-": "both sides must be of one kind of number; convert with `double(…)` or `int(…)`",
    "*": "both sides must be of one kind of number; convert with `double(…)` or `int(…)`",
    "/": "both sides must be of one kind of number; convert with `double(…)` or `int(…)`",
    "%": "both sides must be whole numbers; convert with `int(…)`",
    "in": "look for a value of the kind that the list or the keys of the map have",
}


def unknown_name(findings: Findings, name: str, span: Span, local: Sequence[str]) -> None:
    """Note a name that stands for nothing; `local` are the names that macros gave around it."""
    before = findings.source.text[: span.start]
    help_ = _HYPHEN if before.endswith("-") else _meant(name, local)
    findings.add("JS143", f"`{shorten(name, 40)}` is not a known name", span, help_)


def _meant(name: str, local: Sequence[str]) -> str:
    if name in FUNCTIONS or name in ARITIES:
        return f"`{name}` is a function: call it, as in `{name}(…)`"
    if name in _LITERALS:
        return f"write `{_LITERALS[name]}`"
    if name in _OF_EVENT:
        return f"did you mean `event.{name}`?"
    near = _near(name, [*ROOTS, *local, "true", "false", "null"])
    return near or "an expression reads `event`, or `async` where two events meet"


def _near(name: str, known: Sequence[str]) -> str | None:
    close = get_close_matches(name[:40], known, n=1)
    return f"did you mean `{close[0]}`?" if close else None


def unknown_function(findings: Findings, call: Call) -> None:
    """Note a call of a function that there isn't."""
    meant = _FUNCTIONS_ELSEWHERE.get(call.function)
    help_ = f"did you mean `{meant}`?" if meant else _near(call.function, [*FUNCTIONS, *ARITIES])
    message = f"`{shorten(call.function, 40)}` is not a known function"
    findings.add("JS144", message, call.function_span, help_)


def wrong_call(findings: Findings, call: Call) -> None:
    """Note a call of a known function in the wrong way, or with the wrong number of arguments."""
    name, given = call.function, len(call.arguments)
    numbers = _numbers(name, is_method=call.target is not None)
    if numbers and given not in numbers:
        message = f"`{name}` takes {counted(numbers)}, not {given}"
        findings.add("JS145", message, call.function_span)
        return
    on_value = call.target is None and name != "has"
    how = f"value.{name}(…)" if on_value else f"{name}(value)"
    message = f"`{name}` is not called this way"
    findings.add("JS145", message, call.function_span, f"write `{how}`")


def _numbers(name: str, *, is_method: bool) -> list[int]:
    if name in ARITIES:
        return list(ARITIES[name]) if is_method is (name != "has") else []
    fitting = {len(one.takes) - is_method for one in FUNCTIONS[name] if one.is_method is is_method}
    return sorted(fitting)


def wrong_arguments(findings: Findings, call: Call, types: Sequence[Type]) -> None:
    """Note a call whose arguments are of the wrong types, or are too few or too many."""
    is_method = call.target is not None
    if len(types) - is_method not in _numbers(call.function, is_method=is_method):
        wrong_call(findings, call)
        return
    message = f"`{call.function}` does not take {operands(types[is_method:])}"
    if is_method and types[0].is_known:
        message = f"`{call.function}` can't be called on {a_value(types[0])}"
    findings.add("JS146", message, call.function_span, _takes(call.function, is_method=is_method))


def _takes(name: str, *, is_method: bool) -> str:
    ways = [one.takes for one in FUNCTIONS[name] if one.is_method is is_method]
    taken = dict.fromkeys(joined([a_value(one) for one in takes], "with") for takes in ways)
    return f"it {'is called on' if is_method else 'takes'} {joined(list(taken), 'or')}"


def wrong_operands(findings: Findings, node: Binary | Unary, types: Sequence[Type]) -> None:
    """Note an operator between values that it has no meaning for."""
    operator = node.operator
    if operator == "in":
        message = f"`in` can't look for {a_value(types[0])} in {a_container(types[1])}"
    else:
        message = f"`{operator}` does not take {operands(types)}"
    help_ = _ARITHMETIC.get(operator) if isinstance(node, Binary) else None
    if operator == "in" and types[1] == STRING:
        help_ = "a string is searched with `.contains(…)`"
    findings.add("JS146", message, node.operator_span, help_)


def not_boolean(findings: Findings, what: str, found: Type, span: Span) -> None:
    """Note a value that is no boolean where one is needed."""
    message = f"{what} takes a boolean, and this is {a_value(found)}"
    findings.add("JS146", message, span, "compare it, as in `… == 'pro'`")


def no_fields(findings: Findings, found: Type, span: Span) -> None:
    """Note a field read from what has none."""
    findings.add("JS146", f"{a_value(found)} has no fields", span)


def no_index(findings: Findings, target: Type, index: Type, span: Span) -> None:
    """Note an index into what has none, or of the wrong type."""
    message = f"{a_value(target)} can't be indexed"
    if target.name in ("list", "map"):
        message = f"{a_value(target)} can't be indexed with {a_value(index)}"
    findings.add("JS146", message, span)


def no_elements(findings: Findings, call: Call, found: Type) -> None:
    """Note a macro over what has no elements."""
    message = f"`{call.function}` goes over a list or a map, and this is {a_value(found)}"
    findings.add("JS146", message, call.function_span)


def no_message(findings: Findings, name: str, span: Span) -> None:
    """Note braces after a name that is no type of message."""
    message = f"`{shorten(name, 40)}` is not a type that can be written with `{{`"
    findings.add("JS146" if name in NAMES else "JS143", message, span)
