"""JUnit XML: a test case for each file that is clean, and one that failed for each finding."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from jobspec.diagnostics import Diagnostic, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence


def render(findings: Sequence[Diagnostic], files: Sequence[str]) -> str:
    """Return one test suite with its cases grouped by file. Warnings are failures here, too."""
    by_file: dict[str, list[Diagnostic]] = defaultdict(list)
    for found in findings:
        by_file[found.source.file].append(found)
    names = dict.fromkeys([*files, *by_file])
    cases = [case for name in names for case in _cases(name, by_file[name])]
    counts = {"tests": str(len(cases)), "failures": str(len(findings)), "errors": "0"}
    suites = ET.Element("testsuites", {"name": "jobspec", **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": "jobspec check", **counts})
    suite.extend(cases)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _text(suites) + "\n"


def _text(suites: ET.Element) -> str:
    return ET.tostring(suites, encoding="unicode")


def _cases(name: str, findings: Sequence[Diagnostic]) -> list[ET.Element]:
    clean = {"classname": _legal(name), "name": "no findings"}
    return [_failed(found) for found in findings] or [ET.Element("testcase", clean)]


def _failed(found: Diagnostic) -> ET.Element:
    file, (line, column), _ = found.source.place(found.span)
    title = f"{found.code} {found.name} at {line}:{column}"
    attributes = {"classname": _legal(file), "name": title}
    case = ET.Element("testcase", attributes)
    kind = {"type": found.severity.value, "message": _legal(found.message)}
    failure = ET.SubElement(case, "failure", kind)
    text = one_line(found) if found.help is None else f"{one_line(found)}\nhelp: {found.help}"
    failure.text = _legal(text)
    return case


def _legal(text: str) -> str:
    """Return the text with what XML 1.0 can't hold, such as U+0000, replaced by U+FFFD."""
    return "".join(char if _is_legal(char) else "\ufffd" for char in text)


def _is_legal(char: str) -> bool:
    return (
        char in "\t\n\r"
        or " " <= char <= "\ud7ff"
        or "\ue000" <= char <= "\ufffd"
        or char > "\uffff"
    )
