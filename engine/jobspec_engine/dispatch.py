"""An event and the compiled jobs: the runs it is to start.

Keys are resolved here, in the sender's process; what they decide is decided by constraints, in
`send.sql`.
"""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, NamedTuple

from jobspec import EventError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jobspec import CompiledJob, KeyTemplate
    from jobspec_engine.events import Encoded


class Dispatch(NamedTuple):
    """One event for one job: a row of `send.sql`'s second input, in the order of its columns.

    The idempotency key counts for `key_window`, or until its run has ended if `while_active`, or
    else for good. The run is due after `wait`, and a debounced one at `timeout` at the latest.
    """

    event_id: str
    job_id: str
    max_attempts: int
    idempotency_digest: bytes | None = None
    idempotency_key: str | None = None
    debounce_digest: bytes | None = None
    debounce_key: str | None = None
    key_window: timedelta | None = None
    while_active: bool = False
    wait: timedelta | None = None
    timeout: timedelta | None = None
    key_error: str | None = None


def dispatch(event: Encoded, data: Mapping[str, object], job: CompiledJob) -> Dispatch:
    """Return the row that starts a job on an event.

    Raises `EventError` where a key's value is not JSON, and where a key's field is missing or null
    though the job says `on_missing: reject`.
    """
    scope = {"data": data}
    if job.on_missing == "reject":
        _require_fields(job, scope)
    row = Dispatch(event.id, job.id, job.retries + 1)
    if job.idempotency is not None:
        row = _with_idempotency(row, scope, job.idempotency.key, job.idempotency.window)
    if job.debounce is not None:
        debounce = job.debounce
        row = _with_debounce(row, scope, debounce.key, debounce.period, debounce.timeout)
    return row


def note_of(row: Dispatch, data: Mapping[str, object], job: CompiledJob) -> str | None:
    """Say that an event has no idempotency key though the job has the option, and for want of what.

    It is not deduplicated then, as in the reference (keys.jsonl, outcome `absent`).
    """
    if job.idempotency is None or row.idempotency_digest is not None or row.key_error is not None:
        return None
    gaps = job.idempotency.key.missing({"data": data})
    where = ", ".join(dict.fromkeys(".".join(("event.data", *path)) for path in gaps))
    what = f"{where} is missing" if where else f"`{job.idempotency.key.text}` is false"
    return f"no idempotency key: {what}"


def _require_fields(job: CompiledJob, scope: Mapping[str, object]) -> None:
    options = (job.idempotency, job.debounce)
    keys = [option.key for option in options if option is not None and option.key is not None]
    gaps = [path for key in keys for path in key.missing(scope)]
    if gaps:
        fields = ", ".join(dict.fromkeys(".".join(("event.data", *path)) for path in gaps))
        raise EventError(f"job `{job.id}` rejects this event, with nothing or null at {fields}")


def _with_idempotency(
    row: Dispatch,
    scope: Mapping[str, object],
    template: KeyTemplate,
    window: timedelta | Literal["forever", "while-active"],
) -> Dispatch:
    """Deduplicate by the key. With outcome `absent` the option does not apply (keys.jsonl)."""
    key = template.resolve(scope)
    if key.outcome == "error":
        return row._replace(key_error=_unresolved("idempotency", template))
    if key.outcome == "absent":
        return row
    return row._replace(
        idempotency_digest=digest(key.text),
        idempotency_key=readable(key.text),
        key_window=window if isinstance(window, timedelta) else None,
        while_active=window == "while-active",
    )


def _with_debounce(
    row: Dispatch,
    scope: Mapping[str, object],
    template: KeyTemplate | None,
    period: timedelta,
    timeout: timedelta | None,
) -> Dispatch:
    """Debounce by the key's text, also of an `absent` one (keys.jsonl); without a key, the job."""
    text = ""
    if template is not None:
        key = template.resolve(scope)
        if key.outcome == "error":
            return row._replace(key_error=row.key_error or _unresolved("debounce", template))
        text = key.text
    return row._replace(
        debounce_digest=digest(text), debounce_key=readable(text), wait=period, timeout=timeout
    )


def _unresolved(option: str, template: KeyTemplate) -> str:
    return f"the {option} key `{template.text}` adds values that can't be added for this event"


def digest(key: str) -> bytes:
    """Return what constraints compare: the SHA-256 of a key's UTF-8, whatever its length."""
    return sha256(key.encode()).digest()


def readable(key: str) -> str:
    """Return a key as text for people, U+0000 shown as U+2400: Postgres can't keep it in text."""
    return key.replace("\0", "\N{SYMBOL FOR NULL}")


def is_plain(row: Dispatch) -> bool:
    """Tell whether its event alone decides what becomes of a run, which is due at once."""
    return row[_FIRST_KEY:] == _NO_KEY


def is_idempotent(row: Dispatch) -> bool:
    """Tell whether nothing but its event and perhaps an idempotency key decides it."""
    return row.debounce_digest is None and row.wait is None and row.key_error is None


def is_debounced(row: Dispatch) -> bool:
    """Tell whether nothing but its event and a debounce key decides it."""
    return (
        row.debounce_digest is not None and row.idempotency_digest is None and row.key_error is None
    )


def columns(rows: Iterable[tuple[object, ...]], width: int) -> list[list[object]]:
    """Turn rows into columns, as `unnest` takes them; `width` of them, even of no row."""
    turned = [list(column) for column in zip(*rows, strict=True)]
    return turned or [[] for _ in range(width)]


# Where the columns of Dispatch begin that a run without keys leaves alone.
_FIRST_KEY = Dispatch._fields.index("idempotency_digest")
_NO_KEY = Dispatch("", "", 1)[_FIRST_KEY:]
