"""The command `jobspec`: arguments, exit codes, nothing else.

Exit codes: 0 where all is well, 1 for findings, 2 for misuse of the command itself, 130 where it
was interrupted.
"""

from __future__ import annotations

from jobspec.cli.group import main

__all__ = ["main"]
