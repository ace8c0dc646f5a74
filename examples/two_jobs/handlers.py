"""The handlers of the two jobs. What they return is kept with the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobspec_engine import Context


async def send_email(context: Context) -> str:
    return f"sent to {context.event.data['to']}"


def refresh_code_graph(context: Context) -> str:
    # Not async: it runs in a thread, and may block.
    return f"refreshed at {context.event.data['commit']}"
