"""The rows of the table that `make proof` prints: what was attacked, and what came of it.

`JOBSPEC_PROOF_REPORT` names a file; each attack adds one line of JSON to it. Without it nothing is
written, and the tests assert the same.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "JOBSPEC_PROOF_REPORT"


@dataclass
class Row:
    """What came of an attack; a test counts in it as it goes.

    `lost` are runs that never came to their end, `doubled` those beyond what is promised, `stuck`
    those that recovery did not set free. `longest_recovery` is in seconds; None: it was not timed.
    """

    attack: str
    cases: int = 0
    lost: int = 0
    doubled: int = 0
    stuck: int = 0
    longest_recovery: float | None = None


@contextmanager
def attack(name):
    """Give the row of an attack, and write it when that is over, however it ended."""
    row = Row(name)
    try:
        yield row
    finally:
        write(row)


def write(row):
    """Add a row to the report, if there is to be one. Several processes may write at once."""
    if path := os.environ.get(VARIABLE):
        with Path(path).open("a", encoding="utf-8") as report:
            report.write(json.dumps(asdict(row)) + "\n")


def rows(path):
    """Return the rows of a report, in the order in which they were written."""
    return [Row(**json.loads(line)) for line in Path(path).read_text("utf-8").splitlines()]
