"""The index of the guide and its pages name one another."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
INDEX = DOCS / "guide" / "README.md"
LINKS = re.findall(r"\]\(([^)]+)\)", INDEX.read_text(encoding="utf-8"))


def test_the_index_of_the_guide_names_every_page():
    pages = {page.name for page in INDEX.parent.glob("*.md")} - {INDEX.name}
    assert pages <= set(LINKS)


def test_what_the_index_of_the_guide_names_is_there():
    assert all((INDEX.parent / link).is_file() for link in LINKS)
