"""Structured logs: one JSON object per line on stderr.

A line about a request has its route, never its path: logs contain no ids of users, so that erasing a user does not
require searching them.
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
    """Formats a record as one line of JSON, including `extra={"fields": {...}}`."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, message, fields, and the traceback of an exception (which is never sent over HTTP)."""
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
    """Write all logs of this process to stderr as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def note(message: str, *, level: int = logging.INFO, exception: BaseException | None = None, **fields: object) -> None:
    """Log a message with fields."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, message, extra={"fields": fields}, exc_info=exception)
