"""LISTEN for the wake-ups that senders give after their commit. Polling is the floor under it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import AsyncConnection, sql

from jobspec_engine.database import connection_settings

if TYPE_CHECKING:
    from collections.abc import Callable

# What a wake-up says when a run that is running was asked to end: see 0001_init.sql.
CANCEL = "cancel"

log = logging.getLogger(__name__)


async def listen(dsn: str, channel: str, on_wake: Callable[[str], None]) -> None:
    """Call `on_wake` with what every wake-up says, and once at the start for what came before.

    Runs until it is cancelled. Raises `psycopg.OperationalError` when the connection is lost.
    """
    settings = connection_settings(dsn, "jobspec wake-ups")
    connection: AsyncConnection[Any]
    async with await psycopg.AsyncConnection.connect(dsn, **settings) as connection:  # type: ignore[arg-type]
        await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        on_wake(CANCEL)
        async for told in connection.notifies():
            on_wake(told.payload)
