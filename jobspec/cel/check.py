"""Names, functions and types, as the reference checks them when a job is registered.

Every method that checks a node is a generator: it yields the nodes inside and is sent their types.
So the depth of an expression costs no depth of Python's own stack.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from jobspec.cel import complaints
from jobspec.cel.functions import FUNCTIONS, MESSAGES, NAMES, OPERATORS, Overload
from jobspec.cel.macros import ARITIES, Macro, macro_of
from jobspec.cel.tree import (
    Binary,
    Call,
    Index,
    List,
    Literal,
    Map,
    Message,
    Name,
    Node,
    Parentheses,
    Select,
    Ternary,
    Unary,
    bare,
    dotted,
)
from jobspec.cel.types import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Bindings,
    Type,
    list_of,
    map_of,
    most_general,
)
from jobspec.cel.words import a_value

if TYPE_CHECKING:
    from jobspec.cel.findings import Findings

Steps = Generator[Node, Type, Type]
_LITERALS: dict[str, Type] = {
    "int": INT,
    "uint": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "boolean": BOOLEAN,
    "null": NULL,
}


def check_types(root: Node, findings: Findings) -> Type:
    """Note what the reference's type checker refuses; return the type of the whole."""
    return _Checker(findings).run(root)


class _Checker:
    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._bindings = Bindings()
        self._scopes: list[tuple[str, Type]] = []

    def run(self, root: Node) -> Type:
        running = [_steps_of(self, root)]
        sent: Type | None = None
        while running:
            try:
                inner = next(running[-1]) if sent is None else running[-1].send(sent)
            except StopIteration as done:
                running.pop()
                sent = done.value
            else:
                running.append(_steps_of(self, inner))
                sent = None
        assert sent is not None, "every node has a type"  # noqa: S101
        return self._bindings.resolved(sent)

    def literal(self, node: Literal) -> Steps:
        yield from ()
        return _LITERALS[node.kind]

    def name(self, node: Name) -> Steps:
        yield from ()
        found = self._lookup(node.name)
        if found is None:
            local = [name for name, _ in self._scopes]
            complaints.unknown_name(self._findings, node.name, node.span, local)
        return found or ERROR

    def _lookup(self, name: str) -> Type | None:
        for known, of in reversed(self._scopes):
            if known == name:
                return of
        return NAMES.get(name)

    def select(self, node: Select) -> Steps:
        qualified = NAMES.get(dotted(node) or "")
        return qualified or (yield from self._field(node))

    def _field(self, node: Select) -> Steps:
        """Check a field, also where only its presence is asked: that is no qualified name."""
        target = self._bindings.resolved((yield node.target))
        if target.name == "map":
            return target.of[1]
        if target.is_variable:
            self._bindings.fits(DYN, target)
        elif target.is_known:
            complaints.no_fields(self._findings, target, node.field_span)
        return DYN

    def index(self, node: Index) -> Steps:
        types = [(yield node.target), (yield node.index)]
        found = self._resolve(OPERATORS["[]"], types)
        if found is None:
            target, index = self._shown(types)
            complaints.no_index(self._findings, target, index, node.index.span)
        return found or ERROR

    def unary(self, node: Unary) -> Steps:
        types = [(yield node.operand)]
        if node.count % 2 == 0:  # the reference drops pairs, whatever they stand before
            return types[0]
        found = self._resolve(OPERATORS[f"{node.operator}_"], types)
        if found is None:
            complaints.wrong_operands(self._findings, node, self._shown(types))
        return found or ERROR

    def binary(self, node: Binary) -> Steps:
        types = [(yield node.left), (yield node.right)]
        if node.operator in ("&&", "||"):
            return self._logic(node, types)
        found = self._resolve(OPERATORS[node.operator], types)
        if found is None:
            complaints.wrong_operands(self._findings, node, self._shown(types))
        return found or ERROR

    def _logic(self, node: Binary, types: Sequence[Type]) -> Type:
        sides = zip((node.left, node.right), types, strict=True)
        fitting = [self._needs_boolean(f"`{node.operator}`", side, of) for side, of in sides]
        return BOOLEAN if all(fitting) else ERROR

    def _needs_boolean(self, what: str, node: Node, found: Type) -> bool:
        if self._bindings.fits(found, BOOLEAN):
            return True
        (shown,) = self._shown([found])
        complaints.not_boolean(self._findings, what, shown, node.span)
        return False

    def ternary(self, node: Ternary) -> Steps:
        types = [(yield node.condition), (yield node.then), (yield node.otherwise)]
        found = self._resolve(OPERATORS["?:"], types)
        if found is None:
            self._complain_of_ternary(node, types)
        return found or ERROR

    def _complain_of_ternary(self, node: Ternary, types: Sequence[Type]) -> None:
        if not self._needs_boolean("`?`", node.condition, types[0]):
            return
        _, then, otherwise = (a_value(one) for one in self._shown(types))
        message = f"this ternary gives {then} or {otherwise}, and must give one kind of value"
        self._findings.add("JS146", message, node.operator_span, "convert one with `string(…)`")

    def parentheses(self, node: Parentheses) -> Steps:
        return (yield node.inner)

    def list_literal(self, node: List) -> Steps:
        element: Type | None = None
        for item in node.items:
            element = self._joined(element, (yield item))
        return list_of(element or self._bindings.fresh())

    def map_literal(self, node: Map) -> Steps:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._joined(key, (yield entry.key))
            value = self._joined(value, (yield entry.value))
        return map_of(key or self._bindings.fresh(), value or self._bindings.fresh())

    def _joined(self, before: Type | None, found: Type) -> Type:
        """Return the type of elements of which one more is found; mixed ones are anything."""
        if before is None:
            return found
        return most_general(before, found) if self._bindings.fits(before, found) else DYN

    def message(self, node: Message) -> Steps:
        name = dotted(node.target) or ""
        if name not in MESSAGES:
            complaints.no_message(self._findings, name, node.target.span)
        for field in node.fields:
            yield field.value
        return DYN if name in MESSAGES else ERROR

    def call(self, node: Call) -> Steps:
        macro = macro_of(node)
        if macro is Macro.HAS:
            return (yield from self._has(node))
        if macro is not None:
            return (yield from self._over_elements(node, macro))
        return (yield from self._function(node))

    def _function(self, node: Call) -> Steps:
        if node.function in ARITIES:  # a macro in all but its arguments, which may name elements
            complaints.wrong_call(self._findings, node)
            return ERROR
        types: list[Type] = []
        for argument in node.arguments:
            types.append((yield argument))  # noqa: PERF401 - a comprehension can't yield
        if node.target is not None:
            types.insert(0, (yield node.target))
        if node.function not in FUNCTIONS:
            complaints.unknown_function(self._findings, node)
            return ERROR
        is_method = node.target is not None
        ways = [way for way in FUNCTIONS[node.function] if way.is_method is is_method]
        found = self._resolve(ways, types)
        if found is None:
            complaints.wrong_arguments(self._findings, node, self._shown(types))
        return found or ERROR

    def _has(self, node: Call) -> Steps:
        field = bare(node.arguments[0])
        if isinstance(field, Select):
            yield from self._field(field)
        return BOOLEAN

    def _over_elements(self, node: Call, macro: Macro) -> Steps:
        assert node.target is not None, "only `has` has no target"  # noqa: S101
        element = self._element(node, self._bindings.resolved((yield node.target)))
        variable, *bodies = node.arguments
        named = bare(variable)
        self._scopes.append((named.name if isinstance(named, Name) else "", element))
        for body in bodies:
            found = yield body
            if macro is not Macro.MAP or body is not bodies[-1]:
                self._needs_boolean(f"`{node.function}`", body, found)
        self._scopes.pop()
        gives_list = macro in (Macro.MAP, Macro.FILTER)
        return list_of(self._bindings.fresh()) if gives_list else BOOLEAN

    def _element(self, node: Call, target: Type) -> Type:
        if target.name in ("list", "map"):
            return target.of[0]
        if target.is_known:
            complaints.no_elements(self._findings, node, target)
            return ERROR
        self._bindings.fits(DYN, target)
        return DYN

    def _resolve(self, ways: Sequence[Overload], types: Sequence[Type]) -> Type | None:
        """Return the type that a call gives: of all ways that fit, or anything where they differ.

        None means that none fits. As in the reference, every way that fits binds type variables.
        """
        result: Type | None = None
        for way in ways:
            takes, gives = self._instance(way)
            if not self._bindings.all_fit(types, takes):
                continue
            given = self._bindings.resolved(gives)
            result = given if result in (None, given) else DYN
        return result

    def _instance(self, way: Overload) -> tuple[Sequence[Type], Type]:
        """Return what an overload takes and gives, with variables of its own."""
        own = _Renaming(self._bindings.fresh)
        return [own.of(one) for one in way.takes], own.of(way.gives)

    def _shown(self, types: Sequence[Type]) -> list[Type]:
        return [self._bindings.resolved(one) for one in types]


class _Renaming:
    """Gives each variable of one declaration a fresh one."""

    def __init__(self, fresh: Callable[[], Type]) -> None:
        self._fresh = fresh
        self._named: dict[str, Type] = {}

    def of(self, one: Type) -> Type:
        """Return a type with its variables replaced."""
        if one.is_variable:
            return self._named.setdefault(one.name, self._fresh())
        return Type(one.name, tuple(map(self.of, one.of)), one.size) if one.of else one


_STEPS: dict[type[Node], Callable[..., Steps]] = {
    Literal: _Checker.literal,
    Name: _Checker.name,
    Select: _Checker.select,
    Index: _Checker.index,
    Unary: _Checker.unary,
    Binary: _Checker.binary,
    Ternary: _Checker.ternary,
    Parentheses: _Checker.parentheses,
    List: _Checker.list_literal,
    Map: _Checker.map_literal,
    Message: _Checker.message,
    Call: _Checker.call,
}


def _steps_of(checker: _Checker, node: Node) -> Steps:
    return _STEPS[type(node)](checker, node)
