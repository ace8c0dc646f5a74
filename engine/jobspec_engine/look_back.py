"""Answers that come before they are waited for.

A handler asks, by a step, and then waits for the answer. A fast one may be there before the wait
is: so a wait that was begun looks back at the events since the step before was begun. From then on
the sends settle it.

Between the two a send may be under way that has not seen the wait, and whose event the look back
has not seen. Who they are is known before the look back, and it is repeated until none of them is
left.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from jobspec_engine.journal import Journal, Known
    from jobspec_engine.memos import Memo, StepCall, StepKey
    from jobspec_engine.rows import Held

# When to look back again where a transaction that sends has been open for long.
AGAIN = timedelta(minutes=1)

_SHORTEST_PAUSE = timedelta(milliseconds=10)


async def looked_back(
    journal: Journal, known: Known, held: Held, call: StepCall, memo: Memo
) -> Memo | None:
    """Return the memo of a wait, settled if its event has come; None: the run is not held.

    Where sends are under way that may settle it, they are waited for, as long as a short sleep. The
    wait is noted as looked back for when nothing can be found any more.
    """
    if call.key in known.looked_back:
        return memo
    senders, pause = await journal.senders(), _SHORTEST_PAUSE
    since, given = _since(known, call, memo), _given(known, call.key)
    while True:
        found = await journal.look_back(held, call.key, since, given)
        if found is None or found.state != "waiting":
            return found
        if not senders:
            known.looked_back.add(call.key)
            return found
        if pause > journal.short:
            return found
        await asyncio.sleep(pause.total_seconds())
        pause *= 2
        senders &= await journal.senders()


def _since(known: Known, call: StepCall, memo: Memo) -> datetime | None:
    """Return from when on events count; None: from the beginning of the run."""
    if call.before is None:
        return None
    # One without a memo is under way beside the wait.
    return known.memos.get(call.before, memo).answers_from


def _given(known: Known, key: StepKey) -> list[str]:
    """Return the ids of the events that earlier waits of a task, or of its parents, were given."""
    return [
        json.loads(memo.result)["id"]
        for memo in known.memos.values()
        if memo.kind == "wait" and memo.result and _is_of(memo.key.task, key.task)
    ]


def _is_of(parent: str, task: str) -> bool:
    return parent in ("", task) or task.startswith(f"{parent} > ")
