"""The reference's recorded answers, one dict a row (tests/reference/vectors/README.md)."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "reference" / "vectors"


@cache
def rows(name: str) -> tuple[dict[str, Any], ...]:
    """Return the rows of `<name>.jsonl.gz`."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)
