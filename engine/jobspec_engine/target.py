"""What the engine can run: a job with an option that it can't honour is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jobspec
from jobspec_engine.errors import UnsupportedOptionError

if TYPE_CHECKING:
    from jobspec import CompiledJobs


def require_supported(jobs: CompiledJobs) -> None:
    """Raise `UnsupportedOptionError` naming every job and option that the engine can't honour."""
    try:
        jobspec.require_supported(jobs.values(), "engine")
    except jobspec.TargetError as error:
        raise UnsupportedOptionError(str(error)) from None
