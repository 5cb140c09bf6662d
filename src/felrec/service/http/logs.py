"""Structured logs: one JSON object per line on stderr.

A line about a request has its route, never its path: logs contain no ids of users, so that erasing a user does not
require searching them.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any

LOGGER = logging.getLogger("felrec.service")
CAPACITY = 4_000  # lines that wait to be written
PATIENCE = 1.0  # seconds for them to be written at the end
PAUSE = 0.02  # seconds between two writes: waking the thread for every line costs the one who logs more than the line
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


class BackgroundLines(logging.Handler):
    """Writes lines to a file descriptor in a thread of its own.

    A full pipe blocks the thread that writes to it, and must not block others. What does not fit into the queue is
    dropped and counted, and the count is logged once lines can be written again. `logging.handlers.QueueListener` would
    wait for a blocked thread for ever when it stops.
    """

    def __init__(self, descriptor: int, capacity: int = CAPACITY) -> None:
        super().__init__()
        self.descriptor, self.capacity, self.dropped = descriptor, capacity, 0
        self._records: SimpleQueue[logging.LogRecord | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record, or drop it."""
        if self._records.qsize() < self.capacity:
            self._records.put(record)
        else:
            self.dropped += 1

    def close(self) -> None:
        """Write what is queued, if that does not take long. Called by `logging` at the end of the process."""
        self._records.put(None)
        self._thread.join(PATIENCE)
        super().close()

    def _write_all(self) -> None:
        logged = 0
        while (record := self._records.get()) is not None:
            self._write(record)
            if self._records.qsize() <= self.capacity // 2:
                logged = self._log_dropped(logged)
            if self._records.empty():
                time.sleep(PAUSE)
        self._log_dropped(logged)

    def _log_dropped(self, logged: int) -> int:
        """Log how many lines were dropped since the last time; how many that is in all."""
        if (dropped := self.dropped) > logged:
            message = "log lines dropped: they came faster than they could be written"
            record = LOGGER.makeRecord(LOGGER.name, logging.WARNING, __file__, 0, message, (), None)
            record.fields = {"lines": dropped - logged}
            self._write(record)
        return dropped

    def _write(self, record: logging.LogRecord) -> None:
        line = f"{self.format(record)}\n".encode(errors="backslashreplace")
        with suppress(OSError):  # nobody reads any more: there is no place to say so
            while line:
                line = line[os.write(self.descriptor, line) :]


def log_to_stderr() -> None:
    """Write all logs of this process to stderr as JSON lines."""
    handler = BackgroundLines(sys.stderr.fileno())
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Nothing of these is in a line, and to find them out takes longer than the rest of logging it.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


def dropped_lines() -> int:
    """How many lines were dropped since the start of the process."""
    return sum(one.dropped for one in logging.getLogger().handlers if isinstance(one, BackgroundLines))


def note(message: str, *, level: int = logging.INFO, exception: BaseException | None = None, **fields: object) -> None:
    """Log a message with fields."""
    if LOGGER.isEnabledFor(level):
        trace = (type(exception), exception, exception.__traceback__) if exception else None
        record = LOGGER.makeRecord(LOGGER.name, level, __file__, 0, message, (), trace, extra={"fields": fields})
        LOGGER.handle(record)  # without looking for the caller's line, which takes longer
