"""The fixtures of the engine's tests."""

from __future__ import annotations

from enginefixtures import *  # noqa: F403  they are what it is for
