"""`make proof`: all attacks with larger numbers, on each Postgres there is, and one table."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

from proof.report import VARIABLE, Row, rows  # noqa: E402  it is found by the line above

ATTACKS = [TESTS / "proof", TESTS / "engine" / "test_supervisor.py"]
# Numbers that the environment may state otherwise.
LARGER = {
    "HYPOTHESIS_PROFILE": "thorough",
    "JOBSPEC_PROOF_FULL": "1",
    "JOBSPEC_TEST_BLOWS": "200",
    "JOBSPEC_TEST_KILLS": "all",
}
# By what the table calls them, the programs of each server; none: the bundled ones.
SERVERS = {"18": None, "15": "/usr/lib/postgresql/15/bin"}
HEADINGS = ("attack", "Postgres", "cases", "lost", "doubled", "stuck", "longest recovery")


def prove(bin_dir, report, options):
    """Run all attacks on one server; return whether all of them failed to do harm."""
    own = {} if bin_dir is None else {"JOBSPEC_TEST_PG_BIN": bin_dir}
    environment = {**LARGER, **os.environ, **own, VARIABLE: str(report)}
    command = [sys.executable, "-m", "pytest", *map(str, ATTACKS), *options]
    return subprocess.run(command, env=environment, check=False).returncode == 0


def summed(written):
    """Return a row for each kind of attack: what its name says before a colon."""
    kinds = defaultdict(list)
    for row in written:
        kinds[row.attack.partition(":")[0]].append(row)
    return [_sum(kind, same) for kind, same in kinds.items()]


def _sum(kind, same):
    times = [row.longest_recovery for row in same if row.longest_recovery is not None]
    counts = (sum(getattr(row, what) for row in same) for what in HEADINGS[2:6])
    return Row(kind, *counts, max(times, default=None))


def table(by_server):
    """Return the table: its lines, with the columns below each other."""
    lines = [HEADINGS]
    for server, written in by_server.items():
        lines += [_cells(server, row) for row in summed(written)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def _cells(server, row):
    seconds = row.longest_recovery
    time = "" if seconds is None else f"{seconds:.1f} s"
    counts = (row.cases, row.lost, row.doubled, row.stuck)
    return (row.attack, server, *map(str, counts), time)


def main():
    """Run the attacks, with options for pytest, and print the table; 1 where one did harm."""
    by_server = {}
    harmless = True
    with tempfile.TemporaryDirectory(prefix="jobspec-proof-") as folder:
        for server, bin_dir in SERVERS.items():
            if bin_dir is not None and not Path(bin_dir).exists():
                continue
            report = Path(folder, server)
            report.touch()
            harmless &= prove(bin_dir, report, sys.argv[1:])
            by_server[server] = rows(report)
    sys.stdout.write("\n".join(table(by_server)) + "\n")
    sys.exit(not harmless)


if __name__ == "__main__":
    main()
