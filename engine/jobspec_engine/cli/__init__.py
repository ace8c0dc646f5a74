"""The engine's commands, which the command `jobspec` finds by an entry point."""

from __future__ import annotations

from jobspec_engine.cli.commands import commands

__all__ = ["commands"]
