"""Many events as one: a thousand at a time go to the database, all in one transaction."""

from __future__ import annotations

from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING

from jobspec_engine.batch import Exchanged, exchange, prepare, takes_two_statements
from jobspec_engine.calls import MOST_CHARACTERS, Begun
from jobspec_engine.events import new_ids
from jobspec_engine.telemetry import carried

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        self._trace = cache(carried)  # of all of them: to ask for it takes long where there is one
        self._first = self._prepare(0)

    @property
    def whole(self) -> bool:
        """Whether it takes several statements, which a transaction must hold together."""
        return len(self._first) < len(self._events) or takes_two_statements(self._first)

    def send(self, tries: int) -> Calls[Exchanged]:
        """Send the events; return what became of each, in order."""
        wakes = False
        sent: list[Sent] = []
        told: list[Exchanged] = []
        chunks = self._chunks(again=tries > 1)
        ready = [*islice(chunks, 1)]

        def meanwhile() -> None:
            while told:
                sent.extend(told.pop().sent())
            ready.extend(islice(chunks, 1))

        while ready:
            told.append((yield from ready.pop().beside(meanwhile)))
            wakes = wakes or told[-1].wakes
        return Exchanged(lambda: [*sent, *chain.from_iterable(one.sent() for one in told)], wakes)

    def _chunks(self, *, again: bool) -> Iterator[Begun[Exchanged]]:
        """Make chunks ready to be sent, each when it is asked for."""
        chunk, end = self._first, 0
        while chunk:
            yield Begun(exchange(chunk, self._statements, again=again))
            end += len(chunk)
            chunk = self._prepare(end)

    def _prepare(self, start: int) -> list[Prepared]:
        """Prepare the chunk of events that begins there."""
        events = self._events[start : start + CHUNK]
        end = start + len(events)
        self._ids += new_ids(max(end - len(self._ids), 0))
        chunk: list[Prepared] = []
        room = MOST_CHARACTERS
        for event, event_id in zip(events, self._ids[start:end], strict=True):
            chunk.append(prepare(event, self._jobs, event_id, self._trace))
            room -= len(chunk[-1].event.data)
            if room <= 0:
                break
        return chunk
