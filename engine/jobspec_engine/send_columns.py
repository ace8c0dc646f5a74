"""What the parameters of sends hold: events and dispatches, turned into columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from jobspec_engine.arrays import BigIntegers, Booleans, Digests, Integers, Intervals, Texts
from jobspec_engine.calls import numbered

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

Column = Callable[[Iterable[Any]], Sequence[object]]

# The parameters that a statement takes: what each is made of, and its value in a row.
Columns = tuple[tuple[str, Column, Callable[[tuple[Any, ...]], object]], ...]

# The parameters that hold the columns of Encoded, in its order.
EVENT_COLUMNS: dict[str, Column] = {
    "event_ids": Texts,
    "event_names": Texts,
    "event_data": Texts,
    "event_ts": BigIntegers,
    "event_traces": Texts,
}

# The parameters that hold the columns of Dispatch, in its order.
DISPATCH_COLUMNS: dict[str, Column] = {
    "dispatch_event_ids": Texts,
    "job_ids": Texts,
    "max_attempts": Integers,
    "idempotency_digests": Digests,
    "idempotency_keys": Texts,
    "debounce_digests": Digests,
    "debounce_keys": Texts,
    "windows": Intervals,
    "while_active": Booleans,
    "waits": Intervals,
    "timeouts": Intervals,
    "key_errors": Texts,
}


@cache
def columns_of(query: bytes) -> tuple[Columns, Columns]:
    """Return which columns of events and which of dispatches a statement takes."""
    _, names = numbered(query)
    return _taken(EVENT_COLUMNS, names), _taken(DISPATCH_COLUMNS, names)


def _taken(kinds: Mapping[str, Column], names: Container[str]) -> Columns:
    return tuple(
        (name, kind, itemgetter(place))
        for place, (name, kind) in enumerate(kinds.items())
        if name in names
    )


def turned(columns: Columns, rows: Sequence[tuple[Any, ...]]) -> dict[str, Sequence[object]]:
    """Turn rows into the parameters that hold these columns of theirs."""
    return {name: kind(map(value, rows)) for name, kind, value in columns}
