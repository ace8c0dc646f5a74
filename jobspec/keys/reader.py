"""Reads a refused text as far as it makes sense, and notes every fault on the way.

A fault is noted once: what follows from it is not one more. So after a piece that has no meaning
anything may come next, and where a foreign operator makes the whole text another kind of
expression, its operands are not faulted for being one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from jobspec.keys import faults
from jobspec.keys.scan import Token, matching_brackets, scan
from jobspec.source import Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobspec.keys.fault import Fault

MOST_FAULTS = 100
"""A text with more faults than this is no key that somebody got wrong."""

_CONSTANTS = frozenset({"true", "false", "null"})
_RESERVED = _CONSTANTS | {"in"}
_BROKEN = frozenset({"JS118", "JS119", "JS120", "JS121", "JS122", "JS123"})
_OPERANDS = frozenset({"JS107", "JS108", "JS110", "JS111", "JS112", "JS113", "JS115", "JS116"})
_LOOSEST_FIRST = (
    {"?", ":"},
    {"||"},
    {"&&"},
    {"==", "!=", "<", "<=", ">", ">=", "in"},
)

_TERM, _PLUS, _ANYTHING = "term", "plus", "anything"


_NAME_LIKE = frozenset({"word", "number", "backquoted", "stray", "placeholder"})

_FAULTY: dict[str, Callable[[Token], Fault]] = {
    "triple": faults.special_string,
    "prefixed": faults.special_string,
    "curly": faults.wrong_quotes,
    "backquoted": faults.wrong_quotes,
    "placeholder": faults.placeholder,
}


def find_faults(text: str) -> list[Fault]:
    """Return the faults of a text that is not a key template, at most `MOST_FAULTS`."""
    return _Reader(text).read()


class _Reader:
    """One reading: where it is (`at`), what may come next (`expected`), and what it found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = scan(text)
        self.closing = matching_brackets(self.tokens)
        self.at = 0
        self.expected = _TERM
        self.open_parentheses = 0
        self.found: list[Fault] = []
        self.operators: list[Token] = []
        self.in_ternary = False

    def read(self) -> list[Fault]:
        while self.at < len(self.tokens) and len(self.found) < MOST_FAULTS:
            self._read_next(self.tokens[self.at])
        self._read_end()
        return self._told()[:MOST_FAULTS]

    def _told(self) -> list[Fault]:
        if not self.operators:
            return self.found
        loosest = min(self.operators, key=_tightness)
        rest = [fault for fault in self.found if fault.code not in _OPERANDS]
        return [faults.operator(loosest, in_name=self._is_in_name(loosest)), *rest]

    def _is_in_name(self, operator: Token) -> bool:
        """Tell whether a minus stands between letters, and what follows is no field."""
        start, end = operator.span
        around = self.text[start - 1 : start] + self.text[end : end + 1]
        is_field = self.text.startswith("event", end)
        return operator.text == "-" and len(around) > 1 and around.isidentifier() and not is_field

    def _read_end(self) -> None:
        last = self.tokens[-1] if self.tokens else None
        if last is None:
            self.found.append(faults.empty(self.text))
        elif last.kind == "plus" and not any(fault.span == last.span for fault in self.found):
            self.found.append(faults.dangling_plus(last, "after"))

    def _read_next(self, token: Token) -> None:
        if token.kind == "word" and token.text == "in":
            self._read_operator(token)
        else:
            read = self._READERS.get(token.kind, _Reader._read_operand)
            read(self, token)

    def _read_plus(self, token: Token) -> None:
        if self.expected == _TERM:
            self.found.append(faults.dangling_plus(token, "before"))
        self._step(_TERM)

    def _read_operator(self, token: Token) -> None:
        if self.expected == _TERM and token.text == "-" and self._peek(1, "number"):
            span = Span(token.span.start, self.tokens[self.at + 1].span.end)
            self.found.append(faults.number(self.text[span.start : span.end], span))
            self.at += 2
            self.expected = _PLUS
        elif token.text == ":" and not self.in_ternary:
            self._read_stray(token)
        else:
            self.in_ternary |= token.text == "?"
            self.operators.append(token)
            self._step(_TERM)

    def _read_comment(self, token: Token) -> None:
        self.found.append(faults.comment(token))
        self.at += 1

    def _read_stray(self, token: Token) -> None:
        self.found.append(faults.unexpected(token))
        self._step(_ANYTHING)

    def _read_close(self, token: Token) -> None:
        if token.text == ")" and self.open_parentheses:
            self.open_parentheses -= 1
            self._step(_PLUS)
            self._read_selectors(before=0)
        else:
            self._read_stray(token)

    def _read_operand(self, token: Token) -> None:
        """Read one term, or what stands where a term should, and what is selected from it."""
        before, expected = len(self.found), self.expected
        if token.text == "(":
            self._open_parenthesis()
        else:
            self._OPERAND_READERS[token.kind](self, token)
            self._read_selectors(before)
            broken = any(fault.code in _BROKEN for fault in self.found[before:])
            self.expected = _ANYTHING if broken else _PLUS
        self._judge_operand(token.span.start, before, expected)

    def _judge_operand(self, start: int, before: int, expected: str) -> None:
        """Drop the faults that only follow from a fault before the operand, or miss a `+`."""
        new = self.found[before:]
        if expected == _ANYTHING:
            self.found[before:] = [f for f in new if f.code not in _OPERANDS | _BROKEN]
        elif expected == _PLUS and not new:
            span = Span(start, self.tokens[self.at - 1].span.end)
            self.found.append(faults.missing_plus(span))

    def _open_parenthesis(self) -> None:
        self.found.append(faults.parentheses(self._bracket_span(self.at)))
        self.open_parentheses += 1
        self._step(_TERM)

    def _read_string(self, token: Token) -> None:
        self.found += faults.escapes(token) + faults.surrogates(token)
        self.at += 1

    def _read_unclosed(self, token: Token) -> None:
        self.found.append(faults.unclosed_string(token))
        self.at += 1
        del self.tokens[self.at :]  # text or not, nobody can tell

    def _read_faulty(self, token: Token) -> None:
        self.found.append(_FAULTY[token.kind](token))
        self.at += 1

    def _read_number(self, token: Token) -> None:
        self.found.append(faults.number(token.text, token.span))
        self.at += 1

    def _read_collection(self, token: Token) -> None:
        self.found.append(faults.collection(token.text, self._bracket_span(self.at)))
        self._skip_brackets()

    def _read_leading_dot(self, token: Token) -> None:
        if not self._peek(1, "word", "number"):
            self.found.append(faults.broken_path(token.span, ""))
            self.at += 1
            return
        self.found.append(faults.leading_dot(token))
        self.at += 2
        self._read_names()

    def _read_path(self, token: Token) -> None:
        before = len(self.found)
        self.at += 1
        names = [token, *self._read_names()]
        if len(self.found) > before:
            return
        if self._peek_text("("):
            self._call(names[-1].span.start)
        elif token.text in _CONSTANTS and len(names) == 1:
            self.found.append(faults.constant(token))
        else:
            self._judge_path(names)

    def _judge_path(self, names: list[Token]) -> None:
        root = [name.text for name in names[:2]]
        if root not in (["event"], ["event", "data"]):
            self.found.append(faults.outside_data(names))
        elif len(names) <= 2 and not (self._peek_text("[") or self._peek(0, "stray")):
            self.found.append(faults.no_field(names))

    def _read_names(self) -> list[Token]:
        """Read `.name` as often as it comes, up to the first that can't be one."""
        names: list[Token] = []
        while self._peek(0, "dot", "optional"):
            dot = self.tokens[self.at]
            self.at += 1
            if dot.kind == "optional":
                self.found.append(faults.optional_field(dot))
            name = self._read_name(dot)
            if name is None:
                break
            names.append(name)
        return names

    def _read_name(self, dot: Token) -> Token | None:
        """Read what stands after a dot; return it where it can name a field, else note why not."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None or not (token.kind in _NAME_LIKE or token.text in {"-", "*"}):
            self.found.append(faults.broken_path(dot.span, ""))
            return None
        self.at += 1
        if token.text in _RESERVED:
            self.found.append(faults.reserved_field(token))
        elif not (token.kind == "word" and token.text.isascii() and not token.text[0].isdigit()):
            self.found.append(faults.broken_path(token.span, token.text))
        return token

    def _read_selectors(self, before: int) -> None:
        """Read what may follow an operand: `[...]`, `(...)`, and names below those.

        `before` is how many faults there were before the operand.
        """
        start = self.at
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.text == "[":
                self._index()
            elif token.text == "(" and self.at > start:
                self._call(self.tokens[self.at - 1].span.start)
            elif token.kind in {"dot", "optional"}:
                self._select(len(self.found) == before)
            else:
                return

    def _index(self) -> None:
        span = self._bracket_span(self.at)
        self.found.append(faults.indexing(span, self.text[span.start + 1 : span.end - 1]))
        self._skip_brackets()

    def _select(self, from_text: bool) -> None:  # noqa: FBT001 - told by what was found so far
        start = self.tokens[self.at].span.start
        self._read_names()
        if from_text and not self._peek_text("("):
            span = Span(start, self.tokens[self.at - 1].span.end)
            self.found.append(faults.field_of_text(span))

    def _call(self, start: int) -> None:
        end = self._bracket_span(self.at).end
        self.found.append(faults.function_call(Span(start, end)))
        self._skip_brackets()

    def _bracket_span(self, at: int) -> Span:
        close = self.closing.get(at)
        end = self.tokens[at if close is None else close].span.end
        return Span(self.tokens[at].span.start, end)

    def _skip_brackets(self) -> None:
        self.at = self.closing.get(self.at, len(self.tokens) - 1) + 1

    def _peek(self, ahead: int, *kinds: str) -> bool:
        at = self.at + ahead
        return at < len(self.tokens) and self.tokens[at].kind in kinds

    def _peek_text(self, text: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].text == text

    def _step(self, expected: str) -> None:
        self.at += 1
        self.expected = expected

    _READERS: ClassVar[dict[str, Callable[[_Reader, Token], None]]] = {
        "plus": _read_plus,
        "operator": _read_operator,
        "comment": _read_comment,
        "stray": _read_stray,
        "close": _read_close,
    }

    _OPERAND_READERS: ClassVar[dict[str, Callable[[_Reader, Token], None]]] = {
        "string": _read_string,
        "number": _read_number,
        "open": _read_collection,
        "dot": _read_leading_dot,
        "optional": _read_leading_dot,
        "word": _read_path,
        "triple": _read_faulty,
        "prefixed": _read_faulty,
        "unclosed": _read_unclosed,
        "curly": _read_faulty,
        "backquoted": _read_faulty,
        "placeholder": _read_faulty,
    }


def _tightness(operator: Token) -> int:
    for level, operators in enumerate(_LOOSEST_FIRST):
        if operator.text in operators:
            return level
    return len(_LOOSEST_FIRST)
