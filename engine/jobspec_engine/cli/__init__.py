"""The engine's commands, which the command `jobspec` finds by an entry point.

Each says its arguments, what it prints and its exit code, and nothing else: 0 where all is well, 1
where something was found or failed, 2 for misuse.
"""

from __future__ import annotations

from jobspec_engine.cli import dsn, failing, migrating, operating, sending, working

commands = (
    *migrating.commands,
    *sending.commands,
    *working.commands,
    *failing.commands,
    *operating.commands,
    *dsn.commands,
)

__all__ = ["commands"]
