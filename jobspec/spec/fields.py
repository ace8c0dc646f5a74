"""Reading the fields of a mapping: typed values out, everything wrong reported where it stands.

Nothing here raises on bad input. A value that can't be used is reported and read as `None`, so
that one run finds every problem of a file.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from jobspec.diagnostics import RULES, Diagnostic, Related
from jobspec.load import MappingNode, Node, ScalarNode, SequenceNode
from jobspec.source import Span
from jobspec.spec.arguments import required
from jobspec.spec.models import file_name, file_names
from jobspec.spec.wording import (
    addition,
    advice,
    described,
    instead,
    listed,
    nearest,
    suggestion,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Value = TypeVar("Value")
Choice = TypeVar("Choice", bound=str)


class Findings(list[Diagnostic]):
    """What is wrong so far."""

    def report(
        self,
        code: str,
        node: Node,
        message: str,
        help: str | None = None,  # noqa: A002  the word that messages print
        related: tuple[Related, ...] = (),
        *,
        span: Span | None = None,
    ) -> None:
        """Add a finding about a node, or about a range of the file within it."""
        place = node.span if span is None else span
        severity = RULES[code].severity
        self.append(Diagnostic(code, severity, message, node.source, place, help, related))


class Fields:
    """The fields of one mapping, by the names that files use.

    `model` is the class of `jobspec.spec.models` that says which fields there are and which must
    be there; unknown and missing ones are reported at once. `anchor` is what stands for the
    mapping as a whole in findings, such as the key it is the value of.
    """

    def __init__(
        self, node: MappingNode, model: type, findings: Findings, anchor: Node | None = None
    ) -> None:
        self.node = node
        self.findings = findings
        self.anchor = anchor or (node.entries[0].key if node.entries else node)
        self._entries = {entry.name: entry for entry in node.entries}
        meant = self._report_unknown(tuple(file_names(model)))
        for name in required_fields(model) - self._entries.keys() - meant:
            message = f"the field `{name}` is missing here"
            findings.report("JS302", self.anchor, message, addition(name))

    def _report_unknown(self, known: tuple[str, ...]) -> set[str | None]:
        """Report fields that do not exist; return those they were probably meant to be."""
        meant: set[str | None] = set()
        for name in self._entries.keys() - known:
            near = nearest(name, known)
            meant.add(near)
            message = f"`{name}` is not a field here"
            self.findings.report("JS301", self.key_of(name), message, advice(name, known))
        return meant

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def key_of(self, name: str) -> ScalarNode:
        """Return the node of a field's name, for findings about a field as a whole."""
        return self._entries[name].key

    def value_of(self, name: str) -> Node | None:
        """Return the node of a field's value."""
        entry = self._entries.get(name)
        return None if entry is None else entry.value

    def node_of(self, name: str) -> Node:
        """Return the node of a field's value, where there is such a field."""
        return self._entries[name].value

    def text(self, name: str, *, most: int | None = None) -> str | None:
        """Return a text that is not empty, of at most `most` characters."""
        node = self.value_of(name)
        return None if node is None else read_text(node, name, self.findings, most=most)

    def whole(self, name: str, *, least: int, most: int | None = None) -> int | None:
        """Return a whole number from `least` to `most`, both included."""
        node = self.value_of(name)
        if node is None:
            return None
        return read_whole(node, name, self.findings, least=least, most=most)

    def line(self, name: str, *, most: int | None = None) -> str | None:
        """Return a text that names something: one line, of characters that can be kept."""
        node = self.value_of(name)
        return None if node is None else read_line(node, name, self.findings, most=most)

    def number(self, name: str, *, least: float, most: float) -> float | None:
        """Return a number from `least` to `most`, both included."""
        node = self.value_of(name)
        return None if node is None else read_number(node, name, self.findings, least, most)

    def choice(
        self, name: str, choices: tuple[Choice, ...], *, besides: str | None = None
    ) -> Choice | None:
        """Return one of some texts; `besides` says what else could stand there."""
        node = self.value_of(name)
        text = self.text(name)
        if node is None or text is None:
            return None
        for one in choices:
            if one == text:
                return one
        others = f", or {besides}" if besides else ""
        help_ = suggestion(text, choices) or f"write {listed(choices)}{others}"
        self.findings.report("JS304", node, f"`{name}` can't be `{text}`", help_)
        return None

    def parsed(
        self, name: str, parse: Callable[[str, ScalarNode, Findings], Value | None]
    ) -> Value | None:
        """Return what `parse` makes of a text. It is given the text, its node and the findings."""
        node = self.value_of(name)
        text = self.text(name)
        if text is None or not isinstance(node, ScalarNode):
            return None
        return parse(text, node, self.findings)

    def within(self, name: str, model: type) -> Fields | None:
        """Return the fields of a field that is a mapping."""
        node = self.value_of(name)
        mapping = None if node is None else read_mapping(node, name, self.findings)
        if mapping is None:
            return None
        return Fields(mapping, model, self.findings, self.key_of(name))

    def items(self, name: str) -> tuple[Node, ...]:
        """Return the items of a field that is a list."""
        node = self.value_of(name)
        if node is None:
            return ()
        if isinstance(node, SequenceNode):
            return node.items
        wrong_type(self.findings, node, name, "a list")
        return ()

    def report_empty(self, name: str) -> None:
        """Report a list, or a mapping whose fields may all be left out, that has nothing in it."""
        match node := self.value_of(name):
            case SequenceNode(items=()):
                kind = "list"
            case MappingNode(entries=()):
                kind = "mapping"
            case _:
                return
        message = f"`{name}` is an empty {kind}, so it does nothing"
        self.findings.report("JS415", node, message, "write what it is to do, or leave it out")

    def at_most(self, name: str, most: int, items: tuple[Node, ...]) -> None:
        """Report the first item beyond the limit of the reference (configs.jsonl)."""
        if len(items) > most:
            message = f"`{name}` has {len(items)} items, and at most {most} are allowed"
            self.findings.report("JS306", first_of(items[most]), message, f"keep at most {most}")

    def beside(self, name: str, message: str) -> Related:
        """Return a field of this mapping as the second place of a finding."""
        key = self.key_of(name)
        return Related(message, key.source, key.span)


def read_text(node: Node, name: str, findings: Findings, *, most: int | None = None) -> str | None:
    """Return the text of a node, or report that it is none, empty, or too long."""
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
        wrong_type(findings, node, name, "a text")
        return None
    if not node.value:
        findings.report("JS307", node, f"`{name}` is empty", "write something, or leave it out")
        return None
    if most is not None and len(node.value) > most:
        message = f"`{name}` has {len(node.value)} characters, and at most {most} are allowed"
        findings.report("JS308", node, message, "write a shorter one")
        return None
    return node.value


def read_line(node: Node, name: str, findings: Findings, *, most: int | None = None) -> str | None:
    """Return the text of a node that names something, or report what no name can hold.

    Postgres keeps no U+0000 in a text, and a line break or another control character hides in every
    listing. Half a surrogate pair is no text in a file to begin with.
    """
    text = read_text(node, name, findings, most=most)
    if text is None or not isinstance(node, ScalarNode):
        return None
    for offset, char in enumerate(text):
        if unicodedata.category(char) == "Cc":
            message = f"`{name}` holds U+{ord(char):04X}, which no name can hold"
            place = node.locate(Span(offset, offset + 1))
            findings.report("JS320", node, message, "write it without", span=place)
            return None
    return text


def read_whole(
    node: Node, name: str, findings: Findings, *, least: int, most: int | None
) -> int | None:
    """Return the whole number of a node, or report that it is none or out of its range."""
    value = node.value if isinstance(node, ScalarNode) else None
    if not isinstance(value, int) or isinstance(value, bool):
        wrong_type(findings, node, name, "a whole number")
        return None
    if value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"from {least} to {most}"
        message = f"`{name}` must be {limits}, and this is {value}"
        findings.report("JS305", node, message, _nearest_limit(value, least, most))
        return None
    return value


def read_number(
    node: Node, name: str, findings: Findings, least: float, most: float
) -> float | None:
    """Return the number of a node, or report that it is none or out of its range."""
    value = node.value if isinstance(node, ScalarNode) else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        wrong_type(findings, node, name, "a number")
        return None
    if not least <= value <= most:
        message = f"`{name}` must be from {least} to {most}, and this is {value}"
        findings.report("JS305", node, message, _nearest_limit(value, least, most))
        return None
    return float(value)


def _nearest_limit(value: float, least: float, most: float | None) -> str:
    if most is not None and value > most:
        return f"write {most} or less"
    return f"write {least} or more"


def read_mapping(node: Node, name: str, findings: Findings) -> MappingNode | None:
    """Return a node that is a mapping, or report that it is none."""
    if isinstance(node, MappingNode):
        return node
    wrong_type(findings, node, name, "a mapping")
    return None


def item_of(name: str) -> str:
    """Return the name of an item of a list, for `read_mapping` and `wrong_type`."""
    return f"an item of `{name}`"


def wrong_type(findings: Findings, node: Node, name: str, expected: str) -> None:
    """Report a value that is of another kind than its field, or than the item of one."""
    place = name if "`" in name else f"`{name}`"
    message = f"expected {expected} for {place}, found {described(node)}"
    findings.report("JS303", first_of(node), message, instead(node, name, expected))


def first_of(node: Node) -> Node:
    """Return what to underline of a node that may span many lines: its first key or value."""
    if isinstance(node, MappingNode) and node.entries:
        return node.entries[0].key
    if isinstance(node, SequenceNode) and node.items:
        return first_of(node.items[0])
    return node


@cache
def required_fields(model: type) -> frozenset[str]:
    """Return the fields that a mapping must have, by the names that files use."""
    return frozenset(map(file_name, required(model)))
