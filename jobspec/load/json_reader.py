"""JSON texts to nodes: RFC 8259 and nothing beyond it, with the place of every value."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from jobspec.diagnostics import Diagnostic, Related
from jobspec.load.core import integer, number
from jobspec.load.findings import UnreadableError, finding
from jobspec.load.limits import MAX_DEPTH, MAX_NODES, TOO_DEEP, TOO_MANY
from jobspec.load.nodes import (
    Entry,
    Loaded,
    MappingNode,
    Node,
    ScalarNode,
    ScalarValue,
    SequenceNode,
)
from jobspec.source import Source, Span

_SPACE = re.compile(r"[ \t\r\n]*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
# Not `*+`: Python 3.11.2, which Debian 12 has, keeps the start of an iteration that fails.
_STRING_HEAD = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][-+]?[0-9]++)?(?![0-9A-Za-z_.])")
_WORD = re.compile(r"[^\s,:\[\]{}\"']+")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_COMMENTS = ("//", "/*", "#")
_WORDS: dict[str, ScalarValue] = {"true": True, "false": False, "null": None}


def read_json(source: Source) -> Loaded:
    """Return the tree of a JSON text. One of only white space is no node."""
    reader = _Reader(source)
    node = None
    try:
        node = reader.document()
    except UnreadableError as stop:
        reader.diagnostics.append(stop.diagnostic)
    return Loaded(node, source, tuple(reader.diagnostics))


class _Reader:
    """Reads one text from left to right; `_at` is the place of the next character."""

    def __init__(self, source: Source) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._source = source
        self._text = source.text
        self._at = 0
        self._nodes = 0

    def document(self) -> Node | None:
        """Return the one value of the text."""
        if not self._peek():
            return None
        node = self._value(0)
        if self._peek():
            self._stop_at_word("this stands behind the end of the value", "remove it")
        return node

    def _peek(self) -> str:
        """Return the next character that is not white space, or nothing at the end."""
        matched = _SPACE.match(self._text, self._at)
        self._at = matched.end() if matched else self._at
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> Node:
        char = self._peek()
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._stop(TOO_MANY, "split the file", code="JS152")
        if char == '"':
            return self._string()
        if char not in ("{", "["):
            return self._scalar()
        if depth >= MAX_DEPTH:
            self._stop(
                TOO_DEEP,
                "specs need about eight levels",
                code="JS153",
            )
        return self._object(depth) if char == "{" else self._array(depth)

    def _array(self, depth: int) -> SequenceNode:
        start = self._open()
        items: list[Node] = []
        while not self._closes("]", start, first=not items):
            items.append(self._value(depth + 1))
        return SequenceNode(tuple(items), self._source, Span(start, self._at))

    def _object(self, depth: int) -> MappingNode:
        start = self._open()
        entries: dict[str, Entry] = {}
        first = True
        while not self._closes("}", start, first=first):
            first = False
            key = self._key()
            if self._peek() != ":":
                self._stop("a `:` is missing in front of this", 'write `"key": value`')
            self._at += 1
            self._enter(entries, key, self._value(depth + 1))
        return MappingNode(tuple(entries.values()), self._source, Span(start, self._at))

    def _open(self) -> int:
        self._at += 1
        return self._at - 1

    def _closes(self, closing: str, start: int, *, first: bool) -> bool:
        """Go past the comma in front of the next item, or past the closing bracket."""
        char = self._peek()
        if char == closing:
            self._at += 1
            return True
        if not char:
            self._stop(
                f"the bracket is never closed by `{closing}`",
                f"add the `{closing}`",
                Span(start, start + 1),
            )
        if first:
            return False
        if char != ",":
            self._refuse_item(closing)
        comma = self._at
        self._at += 1
        if self._peek() == closing:
            self._stop("a comma with nothing behind it", "remove the comma", Span(comma, comma + 1))
        return False

    def _refuse_item(self, closing: str) -> NoReturn:
        if self._text.startswith(_COMMENTS, self._at):
            self._refuse_comment()
        self._stop_at_word(
            f"a `,` or a `{closing}` is missing in front of this", "separate values by commas"
        )

    def _key(self) -> ScalarNode:
        if self._peek() != '"':
            self._refuse_key()
        return self._string()

    def _refuse_key(self) -> NoReturn:
        if self._text.startswith(_COMMENTS, self._at):
            self._refuse_comment()
        self._stop_at_word("a key is a text in double quotes", 'write `"key": value`')

    def _enter(self, entries: dict[str, Entry], key: ScalarNode, value: Node) -> None:
        name = str(key.value)
        if name not in entries:
            entries[name] = Entry(key, value)
            return
        first = Related("it was set here", self._source, entries[name].key.span)
        self.diagnostics.append(
            finding(
                "JS159",
                f"`{name}` is set twice in one object",
                self._source,
                key.span,
                "remove one of the two",
                (first,),
            )
        )

    def _string(self) -> ScalarNode:
        matched = _STRING.match(self._text, self._at)
        if matched is None:
            self._refuse_string()
        written = matched.group()
        value: str = json.loads(written) if "\\" in written else written[1:-1]
        if _LONE_SURROGATE.search(value):
            self._stop(
                "an escape in this text is half of a surrogate pair",
                "write the whole character",
                Span(*matched.span()),
                "JS165",
            )
        self._at = matched.end()
        return ScalarNode(value, self._source, Span(*matched.span()), "json")

    def _refuse_string(self) -> NoReturn:
        head = _STRING_HEAD.match(self._text, self._at)
        at = head.end() if head else self._at
        char = self._text[at : at + 1]
        if char == "\\":
            self._stop(
                "JSON has no such escape",
                "write `\\\\` for a backslash",
                Span(at, min(at + 2, len(self._text))),
            )
        if char in ("", "\n", "\r"):
            self._stop(
                "this quote is never closed", 'close it with `"`', Span(self._at, self._at + 1)
            )
        self._stop(
            f"the control character U+{ord(char):04X} can't stand in a text",
            f"write `\\u{ord(char):04x}`",
            Span(at, at + 1),
        )

    def _scalar(self) -> ScalarNode:
        start = self._at
        matched = _NUMBER.match(self._text, start)
        if matched is None:
            return self._word()
        self._at = matched.end()
        is_float = matched.group(1) or matched.group(2)
        try:
            value = (number if is_float else integer)(matched.group())
        except OverflowError as problem:
            self._stop(
                str(problem),
                "put it in quotes if it is meant as a text",
                Span(start, self._at),
                "JS166",
            )
        return ScalarNode(value, self._source, Span(start, self._at), "json")

    def _word(self) -> ScalarNode:
        matched = _WORD.match(self._text, self._at)
        word = matched.group() if matched else ""
        if word not in _WORDS:
            self._refuse_value(word)
        start, self._at = self._at, self._at + len(word)
        return ScalarNode(_WORDS[word], self._source, Span(start, self._at), "json")

    def _refuse_value(self, word: str) -> NoReturn:
        if word.startswith(_COMMENTS):
            self._refuse_comment()
        if not word and self._text[self._at : self._at + 1] == "'":
            self._stop("JSON has no single quotes", "write double quotes")
        if not word:
            self._stop("a value is missing here", "write a value")
        self._stop_at_word(f"`{word[:40]}` is not a JSON value", "put texts in double quotes")

    def _refuse_comment(self) -> NoReturn:
        self._stop("JSON has no comments", "remove it, or save the file as `.yaml`")

    def _stop_at_word(self, message: str, advice: str) -> NoReturn:
        matched = _WORD.match(self._text, self._at)
        self._stop(message, advice, Span(*matched.span()) if matched else None)

    def _stop(
        self, message: str, advice: str, span: Span | None = None, code: str = "JS158"
    ) -> NoReturn:
        if span is None:
            span = Span(self._at, min(self._at + 1, len(self._text)))
        raise UnreadableError(finding(code, message, self._source, span, advice))
