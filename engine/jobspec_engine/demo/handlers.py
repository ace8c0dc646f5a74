"""The handlers of the demo's jobs. What they return is kept with the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobspec_engine.context import Context


async def send_email(context: Context) -> str:
    """Pretend to send an email."""
    return f"sent to {context.event.data['to']}"


async def refresh_code_graph(context: Context) -> str:
    """Pretend to refresh the code graph of a repository."""
    data = context.event.data
    return f"refreshed {data['repoOwner']}/{data['repoName']} at {data['commit']}"
