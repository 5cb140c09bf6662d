"""Moves the write-ahead log into the file of a store in a thread of its own, so that no commit waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import apsw

from felrec.store.connecting import connect

_log = logging.getLogger(__name__)
_ENOUGH = 1_000  # pages of the log that are worth moving
_LARGE = 16_384  # pages at which writers wait for the rest to be moved, so that the log begins anew


class Checkpointer:
    """One for each connection that writes. SQLite's own checkpoints, within a commit, are switched off."""

    def __init__(self, path: Path, writer: apsw.Connection, lost: Callable[[], str | None]) -> None:
        self._path, self._lost = path, lost
        self._connection = connect(path)
        self._connection.set_busy_timeout(0)  # reads and writes at that moment come first
        self._moved = 0  # pages of the log that are in the file already
        self._wake, self._closing = threading.Event(), False
        self.lock = threading.Lock()  # held during a checkpoint
        writer.set_wal_hook(self._grown)
        self._thread = threading.Thread(target=self._run, name="felrec-checkpoint", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what is under way; the last connection that is closed moves the rest."""
        self._closing = True
        self._wake.set()
        self._thread.join()
        self._connection.close()

    def _grown(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """Called after each commit with the length of the log."""
        if pages < self._moved:  # it began anew
            self._moved = 0
        if pages - self._moved >= _ENOUGH:
            self._wake.set()
        return apsw.SQLITE_OK

    def _run(self) -> None:
        while self._wake.wait() and not self._closing:
            self._wake.clear()
            try:
                with self.lock:
                    if self._lost() is None:
                        self._checkpoint()
            except apsw.Error as error:
                _log.warning("%s: its write-ahead log was not moved into it (%s)", self._path, error)

    def _checkpoint(self) -> None:
        pages = self._move("PASSIVE")
        if pages >= _LARGE:
            self._move("RESTART")

    def _move(self, how: str) -> int:
        """Returns the length of the log."""
        _, pages, moved = (int(str(n)) for n in self._connection.execute(f"PRAGMA wal_checkpoint({how})").fetchall()[0])
        self._moved = moved
        return pages
