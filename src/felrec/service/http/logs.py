"""Structured logs: one JSON object a line on stderr.

A line about a request names its route, never its address: ids of users stay out of the logs, so that erasing a
user does not mean searching them.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("felrec.service")
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


class JsonLines(logging.Formatter):
    """A record as one line of JSON; what was given as `extra={"fields": {...}}` is part of it."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, message, fields, and the traceback of an exception (which never leaves by HTTP)."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _ENCODER.encode(line)


def log_to_stderr() -> None:
    """Send everything that this process logs to stderr, as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def note(message: str, *, level: int = logging.INFO, exception: BaseException | None = None, **fields: object) -> None:
    """Log a message with fields."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, message, extra={"fields": fields}, exc_info=exception)
