"""Many events as one: a thousand at a time go to the database, all in one transaction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jobspec_engine.batch import Exchanged, exchange, prepare, takes_two_statements
from jobspec_engine.calls import Begun
from jobspec_engine.events import new_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobspec import CompiledJobs
    from jobspec_engine.batch import Prepared
    from jobspec_engine.calls import Calls
    from jobspec_engine.events import Event, Sent
    from jobspec_engine.statements import Statements

# Events a statement. While the database is at some, the next are made ready to be sent and those
# before are told of: so few that this begins soon, and so many that the way there and back counts
# for little.
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
        again = tries > 1
        wakes = False
        sent: list[Sent] = []
        told: list[Exchanged] = []
        ahead = [self._begin(self._first, again=again)]

        def tell() -> None:
            while told:
                sent.extend(told.pop().sent)

        def meanwhile(following: int) -> None:
            tell()
            ahead.append(self._begin(self._prepare(following), again=again))

        for following in range(CHUNK, len(self._events) + CHUNK, CHUNK):
            told.append((yield from ahead.pop().beside(partial(meanwhile, following))))
            wakes = wakes or told[-1].wakes
        tell()
        return Exchanged(lambda: sent, wakes)

    def _begin(self, chunk: Sequence[Prepared], *, again: bool) -> Begun[Exchanged]:
        return Begun(exchange(chunk, self._statements, again=again))

    def _prepare(self, start: int) -> list[Prepared]:
        """Prepare the chunk of events that begins there."""
        chunk = self._events[start : start + CHUNK]
        if len(self._ids) == start:
            self._ids += new_ids(len(chunk))
        ids = self._ids[start : start + CHUNK]
        return [
            prepare(event, self._jobs, event_id) for event, event_id in zip(chunk, ids, strict=True)
        ]
