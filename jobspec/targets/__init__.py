"""What compiled jobs become outside of this process, one module for each target."""

from __future__ import annotations


class TargetError(ValueError):
    """Jobs with options that a target can't express. The message names each option and job."""
