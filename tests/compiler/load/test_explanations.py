"""The examples on the pages of this package's codes are refused with that code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jobspec
from jobspec.load import load_text

PAGES = sorted(Path(jobspec.__file__).parent.glob("explanations/JS1[56]*.md"))
# Their examples are commands, encodings, or too long for a page.
TOLD_IN_WORDS = {"JS150", "JS151", "JS152", "JS153", "JS154", "JS157", "JS165", "JS167", "JS168"}
SHOWN = [page for page in PAGES if page.stem not in TOLD_IN_WORDS]


def example(page, heading):
    language, text = re.search(
        rf"## {heading}\n\n```(\w+)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
    ).groups()
    return text, "page.json" if language == "text" else "page.yaml"


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.stem)
def test_a_bad_example_is_refused_with_its_code(page):
    found = load_text(*example(page, "Example")).diagnostics
    assert page.stem in {one.code for one in found}


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if "```yaml" in page.read_text(encoding="utf-8").split("## Use")[1]],
    ids=lambda page: page.stem,
)
def test_a_good_example_is_read(page):
    assert load_text(*example(page, "Use instead")).diagnostics == ()
