"""Ask runs to end: what the client's calls execute, and what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobspec_engine.arguments import require_text
from jobspec_engine.dispatch import digest
from jobspec_engine.errors import ArgumentError
from jobspec_engine.rows import Cancelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobspec_engine.calls import Calls
    from jobspec_engine.statements import Statements


def cancel(statements: Statements, run_ids: Sequence[int]) -> Calls[list[Cancelled]]:
    """Ask runs to end; return what became of each, in the order given."""
    rows: list[Cancelled] = yield statements.cancel(run_ids)
    found = {row.run_id: row for row in rows}
    return [found.get(run_id, Cancelled(run_id, "unknown")) for run_id in run_ids]


def cancel_by_key(
    statements: Statements, job_id: str, idempotency_key: str | None, job_key: str | None
) -> Calls[list[Cancelled]]:
    """Ask the runs to end that go by a key; return what became of them.

    Raises `ValueError` unless exactly one key is given, `ArgumentError` for what can't be one.
    """
    if (idempotency_key is None) == (job_key is None):
        raise ValueError("give either idempotency_key or job_key")
    require_text("job_id", job_id)
    run_ids: list[int] = yield statements.runs_with_key(
        job_id, _digest(idempotency_key), _digest(job_key)
    )
    return (yield from cancel(statements, run_ids)) if run_ids else []


def _digest(key: str | None) -> bytes | None:
    if key is None:
        return None
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]  callers need not check
        raise ArgumentError(f"the key must be text, not {type(key).__name__}")
    try:  # it may hold U+0000, unlike texts that are kept: only its digest is looked for
        return digest(key)
    except UnicodeEncodeError:
        raise ArgumentError("the key holds half a surrogate pair, which no key has") from None
