"""Brings what was written without a sync to the disk, in a thread of its own.

Otherwise the next commit, for which a post waits, would have to bring all of it to the disk at once.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

_log = logging.getLogger(__name__)
_flush = getattr(os, "fdatasync", os.fsync)  # macOS has only the latter


class Flusher:
    """The write-ahead log of one store that is open. SQLite has no lock on that file which closing it could drop."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve().with_name(f"{path.resolve().name}-wal")
        self._file = os.open(self._path, os.O_RDONLY)
        self._changed = threading.Condition()
        self.busy, self._closing = False, False
        self._thread = threading.Thread(target=self._run, name="felrec-flush", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Begin to bring to the disk what was written."""
        with self._changed:
            self.busy = True
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until what was asked for is on the disk: one must not write faster than the disk does."""
        with self._changed:
            while self.busy:
                self._changed.wait()

    def close(self) -> None:
        """Finish what is under way."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        os.close(self._file)

    def _run(self) -> None:
        while self._take():
            try:
                _flush(self._file)
            except OSError as error:  # the next commit finds it too, and fails
                _log.warning("%s: %s", self._path, error.strerror)
            with self._changed:
                self.busy = False
                self._changed.notify_all()

    def _take(self) -> bool:
        with self._changed:
            while not self.busy and not self._closing:
                self._changed.wait()
            return self.busy
