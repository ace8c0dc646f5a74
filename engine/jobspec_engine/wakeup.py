"""LISTEN for the wake-ups that senders give after their commit. Polling is the floor under it."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import AsyncConnection, sql

from jobspec_engine.database import (
    answered_within,
    connection_settings,
    hang_up,
    set_up_session_async,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# What a wake-up says when a run that is running was asked to end: see 0001_init.sql.
CANCEL = "cancel"

log = logging.getLogger(__name__)

# Seconds until a line on which nothing came is tested, and until a test must have been answered.
_QUIET = 30.0
_PATIENCE = 5.0


async def listen(
    dsn: str,
    channel: str,
    on_wake: Callable[[str], None],
    knock: Callable[[], Awaitable[object]],
    *,
    quiet: float = _QUIET,
    patience: float = _PATIENCE,
) -> None:
    """Call `on_wake` with what every wake-up says, and once at the start for what came before.

    `knock` gives a wake-up on another connection, which proves that they come. A pooler that has
    each transaction answered by another session lets none through: then this returns, with a line
    in the log, and the worker polls. Raises `psycopg.OperationalError` when the connection is lost
    or silent, else runs until it is cancelled.
    """
    settings = connection_settings(dsn, "jobspec wake-ups")
    connection: AsyncConnection[Any]
    async with await psycopg.AsyncConnection.connect(dsn, **settings) as connection:  # type: ignore[arg-type]
        pooled = await set_up_session_async(connection)
        await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        await knock()
        if not await _heard(connection, patience):
            await _give_up(connection, pooled=pooled)
            return
        on_wake(CANCEL)
        while True:
            async for told in connection.notifies(timeout=quiet):
                on_wake(told.payload)
            with answered_within(patience, partial(hang_up, connection)):
                await connection.execute("select")


async def _heard(connection: AsyncConnection[Any], patience: float) -> bool:
    return bool([one async for one in connection.notifies(timeout=patience, stop_after=1)])


async def _give_up(connection: AsyncConnection[Any], *, pooled: bool) -> None:
    if not pooled:
        raise psycopg.OperationalError("no wake-up came over a connection that listens for them")
    await connection.execute("unlisten *")
    log.warning(
        "no wake-up comes through the connection pooler, as in PgBouncer's transaction mode:"
        " polling instead. A DSN that names Postgres itself has runs start at once"
    )
