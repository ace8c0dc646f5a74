"""The engine's commands, which the command `jobspec` finds by an entry point."""

from __future__ import annotations

from jobspec_engine.cli import commands as core
from jobspec_engine.cli import dsn, failing, operating

commands = (*core.commands, *dsn.commands, *failing.commands, *operating.commands)

__all__ = ["commands"]
