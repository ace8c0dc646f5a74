"""What to say of a job that nobody knows: a name that was mistyped finds nothing, in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobspec_engine.calls import fetch
from jobspec_engine.nearness import did_you_mean
from jobspec_engine.tables import say
from jobspec_engine.upkeep_statements import UpkeepStatements

if TYPE_CHECKING:
    import psycopg


def nobody_knows(
    connection: psycopg.Connection[Any], schema: str, job_id: str, otherwise: str | None = None
) -> str | None:
    """Return that no worker and no run knows a job, and which was meant; None: it is known.

    `otherwise` is the advice where none of those that are known comes near.
    """
    known = fetch(connection, UpkeepStatements(schema).knows_job(job_id))[0]
    if known.is_known:
        return None
    advice = did_you_mean(job_id, known.there_are) or otherwise
    return f"no worker and no run knows a job `{job_id}`" + (f"; {advice}" if advice else "")


def say_if_unknown(connection: psycopg.Connection[Any], schema: str, job_id: str | None) -> None:
    """Say on stderr why nothing was found of a job that was asked for, if nobody knows it."""
    if job_id is not None:
        lack = nobody_knows(connection, schema, job_id)
        if lack is not None:
            say(lack, err=True)
