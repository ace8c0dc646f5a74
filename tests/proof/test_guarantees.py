"""The page of guarantees names tests that there are, and others name the page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
DOCS = TESTS.parent / "docs"
PAGE = (DOCS / "guarantees.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)
PROMISES = re.findall(r"^- .*?(?=^- |^$)", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_test_that_the_page_names_is_there(file, test):
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    assert test in {getattr(node, "name", None) for node in tree.body}


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_names_the_test_that_attacks_it(promise):
    assert "::test_" in promise


def test_each_kind_of_promise_has_beside_it_what_is_not_promised():
    kinds = PAGE.split("\n## ")[1:]
    assert len(PROMISES) > 20
    assert [kind for kind in kinds if "\nNot promised: " not in kind] == []


@pytest.mark.parametrize(
    "page", ["../README.md", "guide/README.md", "guide/deployment.md"], ids=lambda page: page
)
def test_a_page_that_speaks_of_promises_leads_to_them(page):
    assert "guarantees.md)" in (DOCS / page).read_text(encoding="utf-8")
