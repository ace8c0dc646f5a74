"""Many events as one: a thousand at a time go to the database, all in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec_engine.batch import Exchanged, exchange, prepare, takes_two_statements
from jobspec_engine.calls import beside
from jobspec_engine.events import new_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobspec import CompiledJobs
    from jobspec_engine.batch import Prepared
    from jobspec_engine.calls import Calls
    from jobspec_engine.events import Event, Sent
    from jobspec_engine.statements import Statements

# Events a statement. While the database is at some, the next are prepared: so few that this begins
# soon, and so many that the way there and back counts for little.
CHUNK = 1_000


class Bulk:
    """Events to send as one: all are kept, or none. Raises `EventError` for what can't be kept.

    Only those of a chunk or two are in memory in all their forms, so that `send` raises it, too,
    perhaps when some statements were executed.
    """

    def __init__(self, events: Sequence[Event], jobs: CompiledJobs, statements: Statements) -> None:
        self._events = events
        self._jobs = jobs
        self._statements = statements
        # For events that have none of their sender's: a second try sends the same.
        self._ids: list[str] = []
        self._first = self._prepare(0)

    @property
    def whole(self) -> bool:
        """Whether it takes several statements, which a transaction must hold together."""
        return len(self._events) > CHUNK or takes_two_statements(self._first)

    def send(self, tries: int) -> Calls[Exchanged]:
        """Send the events; return what became of each, in order."""
        sent: list[Sent] = []
        wakes = False
        ready = self._first
        for following in range(CHUNK, len(self._events) + CHUNK, CHUNK):
            calls = exchange(ready, self._statements, again=tries > 1)
            ready = []

            def prepare_more(at: int = following, more: list[Prepared] = ready) -> None:
                more.extend(self._prepare(at))

            told = yield from beside(calls, prepare_more)
            sent += told.sent
            wakes = wakes or told.wakes
        return Exchanged(sent, wakes)

    def _prepare(self, start: int) -> list[Prepared]:
        """Prepare the chunk of events that begins there."""
        chunk = self._events[start : start + CHUNK]
        if len(self._ids) == start:
            self._ids += new_ids(len(chunk))
        ids = self._ids[start : start + CHUNK]
        return [
            prepare(event, self._jobs, event_id) for event, event_id in zip(chunk, ids, strict=True)
        ]
