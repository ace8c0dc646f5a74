"""How the engine connects: a dead peer is noticed in seconds, not in hours."""

from __future__ import annotations

from psycopg.conninfo import conninfo_to_dict

# libpq's names and units: seconds, but milliseconds for tcp_user_timeout.
_DEFAULTS: dict[str, str | int] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}


def connection_settings(dsn: str, application_name: str) -> dict[str, str | int | bool]:
    """Return what to connect with beside `dsn`, whose own settings win.

    Raises `psycopg.ProgrammingError` for a DSN that can't be read.
    """
    given = conninfo_to_dict(dsn)
    defaults = {**_DEFAULTS, "application_name": application_name}
    return {"autocommit": True} | {k: v for k, v in defaults.items() if k not in given}
