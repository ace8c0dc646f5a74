"""The fixtures of the proof: those of the engine."""

from __future__ import annotations

import pytest

from enginefixtures import *  # noqa: F403  they are what it is for
from jobspec_engine.access import give_access


@pytest.fixture
def access(dsn):
    """A fresh database whose roles have their access."""
    assert give_access(dsn).lacking == ()
    return dsn
