"""What the parameters of sends hold: events and dispatches, turned into columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from jobspec_engine.arrays import BigIntegers, Booleans, Digests, Integers, Intervals, Texts

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

Column = Callable[[Iterable[Any]], Sequence[object]]

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


def turned(
    kinds: Mapping[str, Column], rows: Sequence[tuple[Any, ...]], names: Container[str]
) -> dict[str, Sequence[object]]:
    """Turn rows into those of the parameters that hold their columns that have these names."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(kinds)
    return {
        name: kind(column)
        for (name, kind), column in zip(kinds.items(), columns, strict=True)
        if name in names
    }
