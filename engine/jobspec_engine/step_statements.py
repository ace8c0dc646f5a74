"""The statements of durable steps: one typed function a file."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from jobspec_engine.calls import Call, first
from jobspec_engine.lengths import as_text
from jobspec_engine.memos import Memo, StepKey
from jobspec_engine.statements import Statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from jobspec_engine.memos import Kind, State, StepCall
    from jobspec_engine.rows import Held


# How far a wait looks back at most: it reads all events that came since then.
_FARTHEST_BACK = timedelta(minutes=10)


class MemoWrite(NamedTuple):
    """A memo to keep: the parameters of `remember_one.sql`. JSON is text."""

    run_id: int
    lease_token: Any
    task: str
    name: str
    number: int
    position: int
    kind: Kind
    state: State
    failures: int = 0
    result: str | None = None
    error: str | None = None
    delay: timedelta | None = None
    wake_at: datetime | None = None
    event_name: str | None = None
    event_match: str | None = None
    begun_at: datetime | None = None

    @classmethod
    def of(cls, held: Held, call: StepCall, state: State) -> MemoWrite:
        """Return what to keep of a step, for a pass that holds its run."""
        task, name, number = call.key
        return cls(*held, task, name, number, call.position, call.kind, state)


class KeptRow(NamedTuple):
    """What is kept of a step of a run."""

    run_id: int
    memo: Memo


class Child(NamedTuple):
    """A run that a step starts."""

    job_id: str
    event_id: str
    data: str
    max_attempts: int
    # The trace that its parent is in: JSON text.
    trace: str | None = None


class StepStatements(Statements):
    """The statements, those of steps among them, for the tables of one schema."""

    def memos(self, run_id: int, after: int) -> Call[tuple[datetime, Memo | None]]:
        """Read the time, and the memos of a run that were written since revision `after`."""
        return self._call("memos", _timed, run_id=run_id, after=after)

    def remember(self, writes: Iterable[MemoWrite]) -> Call[KeptRow]:
        """Keep memos: a row for each whose run was still held, as it is kept now."""
        given = [one._asdict() for one in writes]
        return self._call("remember", _kept, writes=json.dumps(given, default=_as_text))

    def remember_one(self, write: MemoWrite) -> Call[KeptRow]:
        """Keep a memo: its row, as it is kept now; none if the run is not held."""
        return self._call("remember_one", _kept, **write._asdict())

    def senders(self) -> Call[list[str] | None]:
        """Read which transactions send events now."""
        return self._call("senders", first)

    def look_back(
        self, held: Held, key: StepKey, since: datetime | None, given: Iterable[str]
    ) -> Call[KeptRow]:
        """Settle a wait by an event that came before it: no row if the run is not held."""
        return self._call(
            "look_back",
            _kept,
            **held._asdict(),
            **key._asdict(),
            since=since,
            at_most=_FARTHEST_BACK,
            given=list(given),
        )

    def reopen(self, held: Held, key: StepKey) -> Call[int]:
        """Have a step that failed tried again."""
        return self._call("reopen", first, **held._asdict(), **key._asdict())

    def invoke(self, held: Held, call: StepCall, child: Child) -> Call[KeptRow]:
        """Start a run and keep a memo that waits for it: no row if the run is not held."""
        return self._call(
            "invoke",
            _kept,
            **held._asdict(),
            **call.key._asdict(),
            position=call.position,
            **child._asdict(),
        )


def _as_text(value: object) -> str:
    """Return what JSON has no form for as Postgres reads it."""
    if isinstance(value, timedelta):
        return as_text(value)
    return str(value)


def _memo(row: Sequence[Any]) -> Memo:
    task, name, number, *rest = row
    return Memo(StepKey(task, name, number), *rest)


def _kept(row: Sequence[Any]) -> KeptRow:
    return KeptRow(row[0], _memo(row[1:]))


def _timed(row: Sequence[Any]) -> tuple[datetime, Memo | None]:
    return row[0], None if row[1] is None else _memo(row[1:])
