"""For tests of one's own jobs: an engine on a throw-away database, whose clock the test moves.

    pytest_plugins = ["jobspec_engine.testing.plugin"]    # in conftest.py: the fixture `rehearse`

docs/guide/testing.md tells how. Nothing here needs pytest but the plugin.
"""

from __future__ import annotations

from jobspec_engine.testing.databases import Clock, Databases, throw_away_server
from jobspec_engine.testing.rehearsal import Rehearsal

__all__ = ["Clock", "Databases", "Rehearsal", "throw_away_server"]
