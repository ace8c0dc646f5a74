"""YAML texts to nodes, over the events of a YAML parser.

PyYAML's own composer and constructor are not used: they follow YAML 1.1, recurse without bound
and can build objects. Here events become nodes directly, so nothing is ever constructed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from yaml.error import MarkedYAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from jobspec.diagnostics import Diagnostic, Related
from jobspec.load.core import TAGS, resolve, resolve_tagged
from jobspec.load.findings import UnreadableError, finding
from jobspec.load.limits import MAX_ALIASED, MAX_DEPTH, MAX_NODES, TOO_DEEP, TOO_MANY
from jobspec.load.nodes import (
    Entry,
    Loaded,
    MappingNode,
    Node,
    ScalarNode,
    ScalarValue,
    SequenceNode,
)
from jobspec.load.yaml_events import events, index_of
from jobspec.source import Source, Span

if TYPE_CHECKING:
    from jobspec.load.places import Style

_STYLES: dict[str | None, Style] = {
    None: "plain",
    "": "plain",
    "'": "single",
    '"': "double",
    "|": "literal",
    ">": "folded",
}
_PROPERTIES = re.compile(r"(?:(?:&[\w-]*|![^\s,\[\]{}]*)(?:[ \t\r\n]++(?:#[^\r\n]*+)?)*+)*+")
_STANDARD_TAG = "tag:yaml.org,2002:"


def read_yaml(source: Source) -> Loaded:
    """Return the tree of a YAML text. Its one document may be empty, and is then no node."""
    composer = _Composer(source)
    node = None
    try:
        node = composer.document()
    except UnreadableError as stop:
        composer.diagnostics.append(stop.diagnostic)
    except MarkedYAMLError as problem:
        from jobspec.load.yaml_faults import describe  # noqa: PLC0415  few files are no YAML

        composer.diagnostics.append(describe(problem, source))
    return Loaded(node, source, tuple(composer.diagnostics))


def content_span(text: str, event: NodeEvent) -> Span:
    """Return where the content of a scalar stands, behind its anchor and tag."""
    start, end = index_of(event.start_mark), index_of(event.end_mark)
    properties = _PROPERTIES.match(text, start)
    return Span(min(properties.end(), end) if properties else start, end)


class _Anchor(NamedTuple):
    """A value that aliases repeat: how many nodes it holds and how deep they nest."""

    node: Node
    size: int
    height: int


class _Composer:
    """Builds the nodes of one text and keeps count of what they cost."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []
        self._events = events(source.text)
        self._anchors: dict[str, _Anchor | None] = {}  # None while the value is being read
        self._nodes = 0
        self._aliased = 0
        self._deepest = 0
        self._end = 0  # of the last thing read: where a block collection ends

    def document(self) -> Node | None:
        """Return the tree of the text's one document."""
        next(self._events)
        start = next(self._events)
        if not isinstance(start, DocumentStartEvent):
            return None
        self._check_version(start)
        node = self._node(self._next(), 0)
        next(self._events)
        following = next(self._events)
        if isinstance(following, DocumentStartEvent):
            self._report_second_document(following)
        return node

    def _next(self) -> NodeEvent:
        """Return the next event where the grammar of events lets only nodes stand."""
        return cast("NodeEvent", next(self._events))

    def _node(self, event: NodeEvent, depth: int) -> Node:
        if isinstance(event, AliasEvent):
            return self._alias(event, depth)
        if event.anchor is None:
            return self._content(event, depth)
        return self._anchored(event, event.anchor, depth)

    def _anchored(self, event: NodeEvent, name: str, depth: int) -> Node:
        nodes, deepest = self._nodes, self._deepest
        self._deepest = depth
        self._anchors[name] = None
        node = self._content(event, depth)
        self._anchors[name] = _Anchor(node, self._nodes - nodes, self._deepest - depth)
        self._deepest = max(deepest, self._deepest)
        return node

    def _content(self, event: NodeEvent, depth: int) -> Node:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._stop("JS152", TOO_MANY, event, "split the file")
        self._deepest = max(self._deepest, depth)
        if isinstance(event, ScalarEvent):
            return self._scalar(event)
        if depth >= MAX_DEPTH:
            self._too_deep(event)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(event, depth)
        return self._mapping(cast("MappingStartEvent", event), depth)

    def _alias(self, event: AliasEvent, depth: int) -> Node:
        name = event.anchor or ""
        if name not in self._anchors:
            self._stop(
                "JS164",
                f"there is no anchor `&{name}` above this",
                event,
                "anchors are set before their aliases: `&name value`",
            )
        anchor = self._anchors[name]
        if anchor is None:
            self._stop(
                "JS164",
                f"`*{name}` repeats the value that it is part of",
                event,
                "write the value out",
            )
        self._aliased += anchor.size
        if self._aliased > MAX_ALIASED:
            self._stop(
                "JS154",
                f"aliases of this file repeat more than {MAX_ALIASED:,} values",
                event,
                "write the values out, or split the file",
            )
        if depth + anchor.height > MAX_DEPTH:
            self._too_deep(event)
        self._nodes += anchor.size
        self._deepest = max(self._deepest, depth + anchor.height)
        self._end = index_of(event.end_mark)
        return anchor.node

    def _scalar(self, event: ScalarEvent) -> ScalarNode:
        style = _STYLES[event.style]
        span = self._scalar_span(event, style)
        self._end = span.end
        try:
            value = self._value(event, style, span)
        except OverflowError as problem:
            self._stop("JS166", str(problem), event, "put it in quotes if it is meant as a text")
        return ScalarNode(value, self.source, span, style)

    def _scalar_span(self, event: ScalarEvent, style: Style) -> Span:
        if event.anchor is None and event.tag is None:
            span = Span(index_of(event.start_mark), index_of(event.end_mark))
        else:
            span = content_span(self.source.text, event)
        if style in ("literal", "folded"):  # they reach to the next token
            return Span(span.start, span.start + len(self.source.text[slice(*span)].rstrip()))
        return span

    def _value(self, event: ScalarEvent, style: Style, span: Span) -> ScalarValue:
        if event.tag is None:
            return resolve(event.value) if style == "plain" else event.value
        wanted = TAGS.get(event.tag)
        if wanted is None:
            self._report_tag(event, event.tag, span.start)
            return event.value
        try:
            return resolve_tagged(event.value, wanted)
        except TypeError:
            self._report_tag(event, event.tag, span.start)
            return event.value

    def _sequence(self, event: SequenceStartEvent, depth: int) -> SequenceNode:
        start = self._collection_start(event, "seq")
        items: list[Node] = []
        for following in self._events:
            if isinstance(following, SequenceEndEvent):
                if event.flow_style:
                    self._end = index_of(following.end_mark)
                break
            items.append(self._node(cast("NodeEvent", following), depth + 1))
        return SequenceNode(tuple(items), self.source, Span(start, max(start, self._end)))

    def _mapping(self, event: MappingStartEvent, depth: int) -> MappingNode:
        start = self._collection_start(event, "map")
        entries: dict[str, Entry] = {}
        for following in self._events:
            if isinstance(following, MappingEndEvent):
                if event.flow_style:
                    self._end = index_of(following.end_mark)
                break
            key = self._node(cast("NodeEvent", following), depth + 1)
            self._enter(entries, key, self._node(self._next(), depth + 1))
        return MappingNode(tuple(entries.values()), self.source, Span(start, max(start, self._end)))

    def _collection_start(self, event: SequenceStartEvent | MappingStartEvent, tag: str) -> int:
        start = index_of(event.start_mark)
        if event.tag is None and event.anchor is None:
            return start
        properties = _PROPERTIES.match(self.source.text, start)
        content = properties.end() if properties else start
        if event.tag is not None and event.tag not in ("!", _STANDARD_TAG + tag):
            self._report_tag(event, event.tag, content)
        return content

    def _enter(self, entries: dict[str, Entry], key: Node, value: Node) -> None:
        if not isinstance(key, ScalarNode) or not isinstance(key.value, str):
            self._report(
                "JS160",
                f"a key has to be a text, and this is {_kind(key)}",
                key.span,
                'put it in quotes: `"…"`',
            )
        elif key.value == "<<" and key.style == "plain":
            self._report(
                "JS161",
                "merge keys are not part of YAML 1.2",
                key.span,
                "write the merged fields out",
            )
        elif key.value in entries:
            first = Related("it was set here", self.source, entries[key.value].key.span)
            self.diagnostics.append(
                finding(
                    "JS159",
                    f"`{key.value}` is set twice in one mapping",
                    self.source,
                    key.span,
                    "remove one of the two",
                    (first,),
                )
            )
        else:
            entries[key.value] = Entry(key, value)

    def _check_version(self, start: DocumentStartEvent) -> None:
        if start.version not in (None, (1, 2)):
            major, minor = start.version
            span = Span(index_of(start.start_mark), index_of(start.end_mark))
            self._report(
                "JS156",
                f"this file asks for YAML {major}.{minor}, and specs are YAML 1.2",
                span,
                "remove the `%YAML` line",
            )

    def _report_second_document(self, start: DocumentStartEvent) -> None:
        span = Span(index_of(start.start_mark), index_of(start.end_mark))
        self._report("JS163", "a second document starts here", span, "move it to a file of its own")

    def _report_tag(self, event: NodeEvent, tag: str, content: int) -> None:
        start = index_of(event.start_mark)
        written = self.source.text[start:content].rstrip()
        shown = "!!" + tag.removeprefix(_STANDARD_TAG) if tag.startswith(_STANDARD_TAG) else tag
        self._report(
            "JS162",
            f"the tag `{shown}` does not fit here",
            Span(start, start + len(written)),
            "remove the tag: values are plain texts, numbers, lists and mappings",
        )

    def _report(self, code: str, message: str, span: Span, advice: str) -> None:
        self.diagnostics.append(finding(code, message, self.source, span, advice))

    def _too_deep(self, event: NodeEvent) -> NoReturn:
        self._stop(
            "JS153",
            TOO_DEEP,
            event,
            "specs need about eight levels",
        )

    def _stop(self, code: str, message: str, event: NodeEvent, advice: str) -> NoReturn:
        span = Span(index_of(event.start_mark), index_of(event.end_mark))
        raise UnreadableError(finding(code, message, self.source, span, advice))


def _kind(node: Node) -> str:
    if isinstance(node, SequenceNode):
        return "a list"
    if isinstance(node, MappingNode):
        return "a mapping"
    if node.value is None:
        return "empty"
    return "a boolean" if isinstance(node.value, bool) else "a number"
