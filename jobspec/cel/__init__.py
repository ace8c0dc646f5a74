"""CEL expressions, as the reference takes them: conditions, and why a key template is refused.

The grammar is built the first time a text is read, never on import.
"""

from __future__ import annotations

from jobspec.cel.describe import construct_at, describe
from jobspec.cel.expressions import calls, check_condition, check_expression, parse, paths
from jobspec.cel.findings import CelError
from jobspec.cel.paths import Path, Step
from jobspec.cel.tree import Node

__all__ = [
    "CelError",
    "Node",
    "Path",
    "Step",
    "calls",
    "check_condition",
    "check_expression",
    "construct_at",
    "describe",
    "parse",
    "paths",
]
