"""The fixtures of the proof: those of the engine."""

from __future__ import annotations

from enginefixtures import *  # noqa: F403  they are what it is for
