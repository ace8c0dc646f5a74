"""SARIF 2.1.0, the exchange format of static analysis, as code-scanning services read it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from jobspec.diagnostics import RULES, Diagnostic, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobspec.source import Source, Span

_OTHER_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(findings: Sequence[Diagnostic], files: Sequence[str]) -> str:
    """Return one run with a rule for each code that was found and a result for each finding."""
    codes = sorted({found.code for found in findings})
    run = {
        "tool": {"driver": {"name": "jobspec", "rules": [_rule(RULES[code]) for code in codes]}},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": _uri(name)}} for name in dict.fromkeys(files)],
        "results": [_result(found, codes.index(found.code)) for found in findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _result(found: Diagnostic, rule_index: int) -> dict[str, object]:
    text = found.message if found.help is None else f"{found.message}\nhelp: {found.help}"
    result: dict[str, object] = {
        "ruleId": found.code,
        "ruleIndex": rule_index,
        "level": found.severity.value,
        "message": {"text": text},
        "locations": [_location(found.source, found.span)],
    }
    if found.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": other.message}} | _location(other.source, other.span)
            for number, other in enumerate(found.related)
        ]
    return result


def _location(source: Source, span: Span) -> dict[str, object]:
    file, start, end = source.place(span)
    region = {
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    }
    return {
        "physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": region},
    }


def _uri(name: str) -> str:
    path = name.replace("\\", "/").removeprefix("./")
    # A name that is not UTF-8 comes with U+DCFF for the byte 0xFF; no file has other surrogates.
    is_of_file = not _OTHER_SURROGATE.search(path)
    return quote(path, errors="surrogateescape" if is_of_file else "replace")
