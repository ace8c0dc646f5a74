"""What changes from one set of jobs to another, and what that means for what is in flight."""

from __future__ import annotations

from jobspec.diff.changes import Change, differences
from jobspec.diff.effects import Harm

__all__ = ["Change", "Harm", "differences"]
