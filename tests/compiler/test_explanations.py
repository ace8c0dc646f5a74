"""Every code is explained, in a fixed form, and listed in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from golden import agrees
from jobspec.diagnostics import RULES

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "jobspec" / "explanations"
HEADINGS = ["What it does", "Why it is bad", "Example", "Use instead"]


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_a_code_has_a_page_with_the_fixed_headings(rule):
    page = (PAGES / f"{rule.code}.md").read_text(encoding="utf-8")
    assert page.splitlines()[0] == f"# {rule.code}: {rule.name}"
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == HEADINGS


def test_there_is_no_page_without_a_code():
    assert {page.stem for page in PAGES.glob("*.md")} == set(RULES)


def test_names_are_used_once():
    assert len({rule.name for rule in RULES.values()}) == len(RULES)


def test_the_documentation_lists_every_code():
    lines = [
        "# Diagnostics",
        "",
        "What `jobspec check` can find. `jobspec explain CODE` prints the page of a code.",
        "",
        "| code | name | severity | what it does |",
        "|---|---|---|---|",
    ]
    lines += [_row(rule) for rule in sorted(RULES.values(), key=lambda rule: rule.code)]
    assert agrees("\n".join(lines) + "\n", ROOT / "docs" / "diagnostics" / "README.md")


def _row(rule):
    page = (PAGES / f"{rule.code}.md").read_text(encoding="utf-8")
    what = page.split("## What it does\n\n")[1].split("\n## ")[0]
    sentence = re.split(r"(?<=\.)\s", " ".join(what.split()))[0]
    link = f"[{rule.code}](../../jobspec/explanations/{rule.code}.md)"
    return f"| {link} | `{rule.name}` | {rule.severity.value} | {sentence} |"
