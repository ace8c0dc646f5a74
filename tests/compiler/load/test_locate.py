"""Every character of a text maps to the place where a person edits it, in every style.

Texts are written by generators that note where each character went, so the expected places are
known exactly and independently of the code under test.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobspec.load import load, load_text
from jobspec.load.places import character_spans
from jobspec.source import Source, Span

# Each example reads a file: a part of the profile's examples keeps that to seconds.
PART = settings(max_examples=settings.default.max_examples // 20)

ESCAPES = {"\0": "0", "\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r"}
ESCAPES |= {"\x1b": "e", '"': '"', "/": "/", "\\": "\\", " ": " ", "\x85": "N", "\xa0": "_"}
ESCAPES |= {"\u2028": "L", "\u2029": "P"}
JSON_ESCAPES = {char: ESCAPES[char] for char in '\b\t\n\f\r"/\\'}

PRINTABLE = st.characters(
    exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs"), exclude_characters="\ufeff\ufffe\uffff"
) | st.sampled_from("aé漢😀#:-'{}[],&*!|>%@`")
WORD_SAFE = st.sampled_from("abcXYZ0189é漢😀._/+-'\"(){}[],&*!|>%@`#:")


@st.composite
def escaped(draw):
    """A character of a double-quoted text and one of the ways to write it."""
    char = draw(PRINTABLE | st.sampled_from(sorted(ESCAPES)))
    ways = [f"\\U{ord(char):08X}"]
    if ord(char) <= 0xFFFF:
        ways.append(f"\\u{ord(char):04x}")
    if ord(char) <= 0xFF:
        ways.append(f"\\x{ord(char):02X}")
    if char in ESCAPES:
        ways.append("\\" + ESCAPES[char])
    elif char != '"':
        ways.append(char)
    return draw(st.sampled_from(ways)), char


@st.composite
def json_escaped(draw):
    char = draw(PRINTABLE | st.sampled_from(sorted(JSON_ESCAPES)))
    units = char.encode("utf-16-be")
    ways = ["".join(f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2))]
    if char in JSON_ESCAPES:
        ways.append("\\" + JSON_ESCAPES[char])
    if char not in JSON_ESCAPES or char == "/":
        ways.append(char)
    return draw(st.sampled_from(ways)), char


def single_quoted(char):
    return ("''" if char == "'" else char), char


@st.composite
def gaps(draw, breaks, indent, *, escapes=False):
    """What may stand between two words: pieces of (written, character or None)."""
    kind = draw(
        st.sampled_from(["blanks", "fold", "escaped break"] if escapes else ["blanks", "fold"])
    )
    if kind == "blanks":
        return [(" ", " ")] * draw(st.integers(1, 3))
    count = draw(st.integers(1, 3))
    blanks = [(" ", None)] * draw(st.integers(0, 2))
    lines = [(breaks, None if kind == "escaped break" or count > 1 else " ")]
    lines += [(breaks, "\n")] * (count - 1)
    start = [("\\", None)] if kind == "escaped break" else blanks
    return [*start, *lines, (indent, None)]


@st.composite
def flow(draw, style):
    """A plain, single- or double-quoted text as pieces, inside of its quotes."""
    breaks, indent = draw(st.sampled_from(["\n", "\r\n"])), "  " + " " * draw(st.integers(1, 4))
    chars = {
        "double": escaped(),
        "single": PRINTABLE.map(single_quoted),
        "plain": WORD_SAFE.map(lambda char: (char, char)),
    }[style]
    words = st.lists(chars, min_size=1, max_size=6)
    if style == "plain":  # no comment, no key, no indicator in front
        words = words.map(lambda word: [("x", "x"), *word, ("x", "x")])
    pieces = []
    for number, word in enumerate(draw(st.lists(words, min_size=1, max_size=5))):
        if number:
            pieces += draw(gaps(breaks, indent, escapes=style == "double"))
        pieces += word
    return pieces


@st.composite
def block(draw, style):
    """A literal or folded text as pieces behind its header, and the header."""
    breaks = draw(st.sampled_from(["\n", "\r\n"]))
    indent = draw(st.integers(1, 5))
    texts = st.text(st.sampled_from("ab é漢😀#:'\"\\\t"), min_size=1, max_size=6)
    lines = draw(st.lists(st.just("") | texts, min_size=1, max_size=6))
    if not any(lines):
        lines.append("x")
    ends_bare = draw(st.booleans()) and lines[-1] != ""
    chomping = draw(st.sampled_from(["", "-", "+"]))
    first = next(line for line in lines if line)
    shown = str(indent) if first[0] in " \t" or draw(st.booleans()) else ""
    header = {"literal": "|", "folded": ">"}[style] + draw(
        st.sampled_from([shown + chomping, chomping + shown])
    )
    header += draw(st.sampled_from(["", " # why"])) + breaks
    return header, block_pieces(lines, style, " " * indent, breaks, chomping, ends_bare)


def block_pieces(lines, style, indent, breaks, chomping, ends_bare):
    """Lay lines out by the rules of YAML's chapter 8.1, noting each character."""
    last = max(number for number, line in enumerate(lines) if line)
    pieces = []
    for number, line in enumerate(lines):
        if line:
            pieces += [(indent, None), *((char, char) for char in line)]
        if number < last:
            pieces.append((breaks, inner_break(lines, number, style)))
        elif number == last:
            has_break = not (ends_bare and number == len(lines) - 1)
            pieces.append(
                (breaks if has_break else "", "\n" if has_break and chomping != "-" else None)
            )
        else:
            pieces.append((breaks, "\n" if chomping == "+" else None))
    return pieces


def inner_break(lines, number, style):
    """Return the character that the break behind a line gives, in front of the last text."""
    texts = [at for at, line in enumerate(lines) if line]
    before = [at for at in texts if at <= number]
    following = lines[min(at for at in texts if at > number)]
    if style == "literal" or not before:
        return "\n"
    if lines[before[-1]][0] in " \t" or following[0] in " \t":
        return "\n"
    if before[-1] < number:
        return "\n"
    return None if lines[number + 1] == "" else " "


def check(text, start, pieces, name="jobs.yaml"):
    """Assert that the value at `key` is what the pieces say, and that all its places are."""
    value, spans, at = "", [], start
    for written, char in pieces:
        if char is not None:
            value += char
            spans.append(Span(at, at + len(written)))
        at += len(written)
    loaded = load_text(text, name)
    assert loaded.diagnostics == ()
    node = loaded.node.get("key")
    assert node.value == value
    assert [node.locate(Span(i, i + 1)) for i in range(len(value))] == spans
    if spans:
        assert node.locate(Span(0, len(value))) == Span(spans[0].start, spans[-1].end)
        end = node.locate(Span(len(value), len(value)))
        assert end == Span(spans[-1].end, spans[-1].end)
        assert node.locate(Span(0, 0)) == Span(spans[0].start, spans[0].start)


def written(pieces):
    return "".join(text for text, _ in pieces)


PROPERTIES = st.sampled_from(["", "&anchor ", "!!str ", "&a-1 !!str ", "! "])
FOLLOWING = st.sampled_from(["", "\n", "\n# comment\nnext: 1\n", "\nnext: 1\n"])


@pytest.mark.parametrize(("style", "quote"), [("double", '"'), ("single", "'"), ("plain", "")])
@PART
@given(data=st.data())
def test_flow_texts_map_to_their_places(style, quote, data):
    pieces = data.draw(flow(style))
    before = "key: " + data.draw(PROPERTIES) + quote
    after = quote + data.draw(FOLLOWING)
    check(before + written(pieces) + after, len(before), pieces)


@pytest.mark.parametrize("style", ["literal", "folded"])
@PART
@given(data=st.data())
def test_block_texts_map_to_their_places(style, data):
    header, pieces = data.draw(block(style))
    outer = data.draw(PROPERTIES) + header
    text = "key: " + outer + written(pieces)
    check(text, len("key: " + outer), pieces)


@PART
@given(st.lists(json_escaped(), max_size=12))
def test_json_texts_map_to_their_places(pieces):
    before = '{"other": 1,\r\n\t"key": "'
    check(before + written(pieces) + '"}\n', len(before), pieces, "jobs.json")


def test_the_places_of_a_text_are_found_once_for_all_of_its_findings():
    source = Source("a.yaml", "a: " + "x" * 100)
    root = load(source).node
    node = root.get("a")
    before = character_spans.cache_info().misses
    places = [node.locate(Span(at, at + 1)) for at in range(100)]
    assert places == [Span(at + 3, at + 4) for at in range(100)]
    assert character_spans.cache_info().misses == before + 1
