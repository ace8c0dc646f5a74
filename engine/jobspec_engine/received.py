"""Events as they are received: by a handler, and by a step that waited for one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobspec_engine.payload import parse

if TYPE_CHECKING:
    from jobspec_engine.rows import Claimed


@dataclass(frozen=True, init=False)
class ReceivedEvent:
    """The event a run carries. `ts` is in milliseconds since 1970."""

    id: str
    name: str
    ts: int
    json: str

    def __init__(self, id: str, name: str, ts: int, json: str) -> None:  # noqa: A002  its field
        vars(self).update(id=id, name=name, ts=ts, json=json)  # one call, and not one a field

    @property
    def data(self) -> Any:
        """The data as it was sent.

        Raises `ValueError` with the place of a number that has more digits than Python reads: plain
        SQL may have added it.
        """
        values = vars(self)  # Python 3.11 takes a lock for a `cached_property`, as long as to read
        if "data" not in values:
            values["data"] = parse(self.json)
        return values["data"]


def event_of(run: Claimed) -> ReceivedEvent:
    """Return the event of a claimed run."""
    return ReceivedEvent(run.event_id, run.event_name, run.event_ts, run.event_data)


def received_event(text: str) -> ReceivedEvent:
    """Return the event that the memo of a step keeps."""
    kept = json.loads(text)
    return ReceivedEvent(kept["id"], kept["name"], kept["ts"], json.dumps(kept["data"]))
