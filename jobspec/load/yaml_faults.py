"""What a YAML parser's complaint means to the person who wrote the file.

The parsers speak of their own states ("did not find expected key"). Here each complaint becomes
a sentence about the text, at the place where it goes wrong. Words of both parsers are listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from jobspec.load.findings import finding
from jobspec.load.limits import MAX_DEPTH, TOO_DEEP
from jobspec.load.yaml_events import index_of
from jobspec.source import Source, Span

if TYPE_CHECKING:
    from yaml.error import MarkedYAMLError

    from jobspec.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class _Fault:
    message: str
    advice: str
    code: str = "JS156"
    at: Literal["problem", "opening", "our limit"] = "problem"


_MOST_OF_LIBYAML = 1000  # collections within each other

_TAB = _Fault("a tab indents this line", "indent with spaces", "JS157")
_INDENTATION = _Fault(
    "this line is not indented like the ones around it",
    "start it in the same column as the lines it belongs to",
)
_TRAILING = _Fault(
    "this stands behind the end of a value",
    "put the whole value in quotes of the other kind, or remove this",
)
_QUOTE_OPEN = _Fault("this quote is never closed", "close it with the same quote", at="opening")
_SECOND_COLON = _Fault(
    "a colon and a space start a second value on this line", "put the value in quotes"
)
_NO_KEY_HERE = _Fault(
    "a key can't stand here: the line above has a value already",
    "indent it like the key above, or remove that value",
)
_LIST_ON_KEY_LINE = _Fault(
    "a list can't start on the line of its key", "start the list on the next line"
)
_BLOCK_HEADER = _Fault(
    "the text of a block starts on the next line",
    "move it to the next line, or remove the `|` or `>`",
)
_SHORT_ESCAPE = _Fault(
    "this escape has too few hexadecimal digits", "write `\\x41`, `\\u0041` or `\\U00000041`"
)
_FALLBACK = _Fault("this is not valid YAML", "put texts with special characters in quotes")

# The first complaint that contains the words on the left decides.
_FAULTS: tuple[tuple[str, _Fault], ...] = (
    ("tab character", _TAB),
    ("sequence entries are not allowed", _LIST_ON_KEY_LINE),
    (
        "mapping keys are not allowed",
        _Fault("a `?` and a space start a complex key", "put the text in quotes"),
    ),
    (
        "',' or ']'",
        _Fault(
            "this list is not closed properly",
            "separate its items by `,` and end it with `]`",
            at="opening",
        ),
    ),
    (
        "',' or '}'",
        _Fault(
            "this mapping is not closed properly",
            "separate its entries by `,` and end it with `}`",
            at="opening",
        ),
    ),
    (
        "could not find expected ':'",
        _Fault(
            "a key begins here, and its `:` is missing",
            "write a `:` and a space behind the key",
            at="opening",
        ),
    ),
    ("unexpected end of stream", _QUOTE_OPEN),
    ("unexpected document", _QUOTE_OPEN),
    (
        "unknown escape character",
        _Fault(
            "double-quoted texts have no such escape",
            "write `\\\\` for a backslash, or use single quotes",
        ),
    ),
    ("hexdecimal", _SHORT_ESCAPE),  # libyaml's own spelling
    ("hexadecimal", _SHORT_ESCAPE),
    (
        "invalid Unicode character",
        _Fault("this escape names no character", "write the character itself"),
    ),
    ("comment or line break", _BLOCK_HEADER),
    ("comment or a line break", _BLOCK_HEADER),
    ("chomping or indentation", _BLOCK_HEADER),
    (
        "indentation indicator",
        _Fault("the indentation of a block text is 1 to 9", "remove the number"),
    ),
    (
        "maximum nesting depth",  # of libyaml's scanner, which runs ahead of our own count
        _Fault(TOO_DEEP, "specs need about eight levels", "JS153", at="our limit"),
    ),
    ("tag handle", _Fault("this tag is not declared", "remove the tag", "JS162")),
    (
        "incompatible YAML",
        _Fault("this file asks for another version of YAML", "remove the `%YAML` line"),
    ),
    (
        "document start",
        _Fault("this stands behind the end of the document", "remove it, or the `...` above it"),
    ),
    ("node content", _Fault("a value is missing here", "write the value, or put it in quotes")),
)

# By what was being read when something else turned up.
_CONTEXTS: tuple[tuple[str, _Fault], ...] = (
    ("an anchor", _Fault("a text can't start with `&`", "put it in quotes")),
    ("an alias", _Fault("a text can't start with `*`", "put it in quotes")),
    ("a tag", _Fault("a text can't start with `!`", "put it in quotes")),
    ("a directive", _Fault("a line can't start with `%`", "put it in quotes, or remove the line")),
)


def describe(problem: MarkedYAMLError, source: Source) -> Diagnostic:
    """Return the diagnostic for what a parser refused."""
    mark = problem.problem_mark or problem.context_mark
    at = index_of(mark) if mark else 0
    fault = _fault(problem, source.text, at)
    if fault.at == "opening" and problem.context_mark is not None:
        at = index_of(problem.context_mark)
    elif fault.at == "our limit":
        at = _opening_before(source.text, at, _MOST_OF_LIBYAML - MAX_DEPTH)
    return finding(fault.code, fault.message, source, _caret(source.text, at), fault.advice)


def _fault(problem: MarkedYAMLError, text: str, at: int) -> _Fault:
    words = problem.problem or ""
    if "cannot start any token" in words:
        return _bad_start(text, at)
    if "mapping values" in words:
        return _stray_colon(text, at)
    if any(said in words for said in ("expected key", "expected '-'", "<block end>")):
        return _INDENTATION if _opens_line(text, at) else _TRAILING
    listed = _first(_FAULTS, words) or _first(_CONTEXTS, problem.context or "")
    return listed or _FALLBACK


def _first(table: tuple[tuple[str, _Fault], ...], words: str) -> _Fault | None:
    return next((fault for said, fault in table if said in words), None)


def _bad_start(text: str, at: int) -> _Fault:
    char = text[at : at + 1]
    if char == "\t":
        return _TAB
    return _Fault(f"a text can't start with `{char}`", "put it in quotes")


def _stray_colon(text: str, at: int) -> _Fault:
    """Tell a second `: ` on one line from a key below a value."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return _SECOND_COLON if ": " in line else _NO_KEY_HERE


def _opening_before(text: str, at: int, count: int) -> int:
    """Return the place of the bracket that opens so many collections before one at `at`.

    All of them stand in the thousand characters that may be a key, so hardly anything else does.
    """
    for _ in range(count):
        at = max(text.rfind("[", 0, at), text.rfind("{", 0, at))
    return at


def _opens_line(text: str, at: int) -> bool:
    return not text[text.rfind("\n", 0, at) + 1 : at].strip()


def _caret(text: str, at: int) -> Span:
    at = min(at, len(text))
    return Span(at, at + 1 if text[at : at + 1].strip() else at)
