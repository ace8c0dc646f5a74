"""Every file of `examples/broken` has one fault, and a golden file of what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden import agrees
from jobspec import report
from jobspec.compile import examine
from jobspec.load import ScalarNode

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
EXAMPLES = sorted((ROOT / "examples" / "broken").iterdir())


@pytest.fixture(autouse=True)
def _in_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_a_broken_example_gets_the_report_in_its_golden_file(example):
    examined = examine(example.relative_to(ROOT))
    text = report.render("full", examined.findings, examined.files)
    assert agrees(text, GOLDEN / f"{example.stem}.txt")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_a_broken_example_has_one_finding_inside_the_file(example):
    (found,) = examine(example.relative_to(ROOT)).findings
    assert 0 <= found.span.start <= found.span.end <= len(found.source.text)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_no_report_shows_a_terminal_of_a_grammar_or_a_python_value(example):
    for found in examine(example.relative_to(ROOT)).findings:
        said = f"{found.message} {found.help}"
        assert "__" not in said
        assert "<class" not in said
        assert ScalarNode.__name__ not in said
        assert not any(word.isupper() and "_" in word for word in said.split())


def test_there_is_no_golden_file_without_an_example():
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {example.stem for example in EXAMPLES}
