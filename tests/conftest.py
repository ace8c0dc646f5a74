"""How much Hypothesis tries: `HYPOTHESIS_PROFILE=thorough` for the long run, `ci` without it."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    max_examples=5_000,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", parent=settings.get_profile("ci"), max_examples=200_000, derandomize=False
)
# A change of the code is found by few examples or by none.
settings.register_profile("mutation", parent=settings.get_profile("ci"), max_examples=50)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
