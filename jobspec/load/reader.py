"""One text to its tree: the checks that hold for every format, then the reader of the format."""

from __future__ import annotations

import re

from jobspec.load.findings import finding
from jobspec.load.limits import MAX_SIZE
from jobspec.load.nodes import Loaded
from jobspec.load.yaml_reader import read_yaml
from jobspec.source import Source, Span

# What YAML 1.2 can't print, and the three that only YAML 1.1 takes for line breaks. Written as what
# is forbidden, since all the rest takes ten times as long to compile.
_NOT_YAML = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]"
)
_NOT_UNICODE = re.compile(r"[\ud800-\udfff]")
_BREAKS_OF_SOME = "\x85\u2028\u2029"


def load_text(text: str, name: str) -> Loaded:
    """Return what a text holds. It is JSON where `name` ends in `.json`, and YAML otherwise.

    A byte order mark is dropped, so places count from behind it, as editors do.
    """
    return load(Source(name, text.removeprefix("\ufeff")))


def load(source: Source) -> Loaded:
    """Return what a text holds, its problems among it; no text raises."""
    is_json = source.name.lower().endswith(".json")
    refused = _size(source) or _characters(source, _NOT_UNICODE if is_json else _NOT_YAML)
    if refused is not None:
        return refused
    loaded = _json(source) if is_json else read_yaml(source)
    if loaded.node is None and not loaded.diagnostics:
        return _refused(
            "JS155", "this file is empty", source, Span(0, 0), "write `jobs:` and a list of jobs"
        )
    return loaded


def _json(source: Source) -> Loaded:
    from jobspec.load.json_reader import read_json  # noqa: PLC0415  few specs are JSON

    return read_json(source)


def _size(source: Source) -> Loaded | None:
    if len(source.text) <= MAX_SIZE:
        return None
    return _refused(
        "JS152",
        f"this file holds more than {MAX_SIZE:,} characters",
        source,
        Span(0, 0),
        "split the file",
    )


def _characters(source: Source, forbidden: re.Pattern[str]) -> Loaded | None:
    found = forbidden.search(source.text)
    if found is None:
        return None
    char = found.group()
    name = f"U+{ord(char):04X}"
    if char in _BREAKS_OF_SOME:
        message, advice = (
            f"{name} ends a line for some readers of YAML and not for others",
            "write it as an escape in a double-quoted text",
        )
    elif _NOT_UNICODE.match(char):
        message, advice = f"{name} is half of a surrogate pair", "write the whole character"
    else:
        message, advice = (
            f"the control character {name} can't stand in a file",
            "remove it, or write it as an escape in a double-quoted text",
        )
    return _refused("JS165", message, source, Span(*found.span()), advice)


def _refused(code: str, message: str, source: Source, span: Span, advice: str) -> Loaded:
    return Loaded(None, source, (finding(code, message, source, span, advice),))
