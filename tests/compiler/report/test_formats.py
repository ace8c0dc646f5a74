"""One set of findings in every format, each in a golden file."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from pydantic_sarif.model import (
    StaticAnalysisResultsFormatSarifVersion210JsonSchema as SarifLog,
)

from golden import agrees
from jobspec import report
from jobspec.diagnostics import Diagnostic, Related, Severity, in_order
from jobspec.report import full
from jobspec.source import Source, Span

GOLDEN = Path(__file__).parent / "golden"
SUFFIXES = {"full": "txt", "concise": "txt", "github": "txt", "junit": "xml"}


def at(source, text, code="JS301", severity=Severity.ERROR, **more):
    start = source.text.index(text)
    span = Span(start, start + len(text))
    return Diagnostic(
        code, severity, f"something is wrong with `{text.split()[0]}`", source, span, **more
    )


def marked(text, part):
    """The line of source and the line of marks under it, for one finding in one line of text."""
    lines = full.render([at(Source("a.yaml", text), part)], ["a.yaml"]).splitlines()
    return lines[3].removeprefix("1 | "), lines[4].removeprefix("  | ")


FIRST = Source("jobs/a.yaml", "jobs:\n  - id: one\n    retries: '4'\n")
SECOND = Source(
    "jobs/b, c.yaml", "jobs:\r\n  - id: one\r\n    name: 日本\tx\r\n" + "\n" * 8 + "end: 1\n"
)
DECLARED = Source(
    'app/jobs.py:12 job "mail"',
    'jobs:\n- id: "mail"\n  retries: "4"\n',
    is_made=True,
    declared_at=("app/jobs.py", 12),
)
FINDINGS = in_order(
    [
        at(DECLARED, '"4"', "JS303", related=(Related("and this", DECLARED, Span(12, 18)),)),
        at(SECOND, "end", "JS301", help="100% sure:\nremove it"),
        at(SECOND, "one", "JS309", related=(Related("first used here", FIRST, Span(14, 17)),)),
        at(FIRST, "'4'", "JS303", help="write `4`"),
        at(SECOND, "日本", "JS409", Severity.WARNING),
        at(FIRST, "id: one\n    retries", "JS302"),
        Diagnostic(
            "JS313", Severity.ERROR, "nothing is here", Source("empty.yaml", ""), Span(0, 0)
        ),
    ]
)
FILES = ["app/jobs.py", "jobs/a.yaml", "jobs/b, c.yaml", "clean.yaml", "empty.yaml"]


@pytest.mark.parametrize("name", report.FORMATS)
def test_a_format_gives_what_its_golden_file_has(name):
    text = report.render(name, FINDINGS, FILES)
    assert agrees(text, GOLDEN / f"{name}.{SUFFIXES.get(name, 'json')}")


@pytest.mark.parametrize("name", ["full", "concise", "github"])
def test_no_findings_are_no_text(name):
    assert report.render(name, [], FILES) == ""


def test_a_format_that_does_not_exist_is_an_error():
    with pytest.raises(KeyError):
        report.render("html", FINDINGS, FILES)


def test_findings_come_by_file_and_place():
    places = [(found.source.name, found.span.start) for found in FINDINGS]
    assert places == sorted(places)


def test_a_caret_stands_under_wide_characters():
    assert marked("名前: 値", "値") == ("名前: 値", "      ^^")


def test_a_caret_stands_behind_tabs():
    assert marked("a:\tb\tc", "c") == ("a:    b    c", "           ^")


def test_combining_characters_take_no_room():
    assert marked("e\u0301: x", "x") == ("e\u0301: x", "   ^")


def test_what_a_terminal_would_obey_is_shown_as_an_escape():
    assert marked("a\x1b[31m: x", "x") == ("a\\u{1b}[31m: x", "             ^")


def test_an_empty_place_gets_one_caret():
    found = Diagnostic("JS302", Severity.ERROR, "m", Source("a.yaml", "ab"), Span(2, 2))
    assert full.render([found], []).splitlines()[4] == "  |   ^"


def test_a_long_line_is_cut_around_the_fault():
    line, marks = marked("x" * 50_000 + " fault " + "y" * 50_000, "fault")
    assert len(line) < 150
    assert line.startswith("…x")
    assert line.endswith("y…")
    assert line[marks.index("^") : marks.rindex("^") + 1] == "fault"


def test_a_fault_longer_than_a_line_is_marked_to_the_end_of_what_is_shown():
    line, marks = marked("key: " + "z" * 100_000, "z" * 100_000)
    assert len(marks) == len(line) - 1  # the sign that more follows is not marked


def test_colours_change_nothing_but_the_colours():
    coloured = full.render(FINDINGS, FILES, full.COLOURED)
    for code in (
        full.COLOURED.error,
        full.COLOURED.warning,
        full.COLOURED.frame,
        full.COLOURED.bold,
        full.COLOURED.reset,
    ):
        coloured = coloured.replace(code, "")
    assert coloured == full.render(FINDINGS, FILES)


def test_junit_holds_only_what_xml_can_hold():
    source = Source("a.yaml", "x\x00\ud800")
    text = report.render("junit", [at(source, "\x00\ud800")], ["a.yaml"])
    suites = ET.fromstring(text)  # noqa: S314  our own text
    assert suites.get("failures") == "1"


def test_a_workflow_command_stays_on_its_line():
    lines = report.render("github", FINDINGS, FILES).splitlines()
    assert len(lines) == len(FINDINGS)
    assert all(line.startswith(("::error file=", "::warning file=")) for line in lines)


@pytest.mark.parametrize("findings", [FINDINGS, ()], ids=["findings", "none"])
def test_sarif_is_valid_by_its_schema(findings):
    text = report.render("sarif", findings, FILES)
    assert SarifLog.model_validate_json(text).version.value == "2.1.0"


@pytest.mark.parametrize("name", ["full", "concise"])
def test_a_file_name_takes_one_line_and_writes_no_escape_codes(name):
    odd = Source("a\nb\x1b[31m.yaml", "jobs: 1\n")
    shown = report.render(name, [at(odd, "1")], [odd.name])
    assert "aU+000AbU+001B[31m.yaml:1:7" in shown


@pytest.mark.parametrize(
    ("name", "uri"), [("b\udcff.yaml", "b%FF.yaml"), ("<job \ud800>", "%3Cjob%20%3F%3E")]
)
def test_a_name_that_is_not_utf_8_has_a_uri_in_sarif(name, uri):
    odd = Source(name, "jobs: 1\n")
    assert f'"uri": "{uri}"' in report.render("sarif", [at(odd, "1")], [odd.name])
