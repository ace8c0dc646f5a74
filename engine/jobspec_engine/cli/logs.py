"""What a worker logs, as lines for people or as JSON for machines."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Literal

from jobspec_engine.tables import plain

# What log records of the engine carry beside their message.
FIELDS = ("worker", "run_id", "job_id", "attempt")

LEVELS = ("debug", "info", "warning", "error")


class JsonFormatter(logging.Formatter):
    """One JSON object a record, on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON: time, level, logger, message, what it carries, and its error."""
        about = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        error = {"error": self.formatException(record.exc_info)} if record.exc_info else {}
        return json.dumps(
            {
                "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
                "level": record.levelname.lower(),
                "logger": record.name,
                "message": record.getMessage(),
                **about,
                **error,
            }
        )


class TextFormatter(logging.Formatter):
    """A line a record, and lines of its error, for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text that gives no orders to a terminal."""
        return plain(super().format(record))


def log_to_stderr(form: Literal["text", "json"], level: str) -> None:
    """Have everything of the engine from a level on logged, and of libraries from INFO on."""
    handler = logging.StreamHandler()
    text = TextFormatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if form == "json" else text)
    logging.basicConfig(level=max(logging.INFO, _number(level)), handlers=[handler])
    logging.getLogger("jobspec_engine").setLevel(_number(level))


def _number(level: str) -> int:
    return logging.getLevelNamesMapping()[level.upper()]
