"""Two more connections to a store file: for threads and processes that do not lead, and for a wait for changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from felrec.store.connecting import connect, translated, wait_for_others
from felrec.store.connection import Connection

_POLL = 0.003  # seconds between two looks at the file
# One clock for all processes of a machine, which no one sets. It begins anew with each boot; see Leader.leads.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SideConnections:
    """Opened when they are needed first. Every method may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._appender: apsw.Connection | None = None
        self._looker: apsw.Connection | None = None
        self._append_lock, self._look_lock = threading.Lock(), threading.Lock()
        self._closing = threading.Event()

    @contextmanager
    def appending(self) -> Iterator[Connection]:
        """See Database.appending."""
        with self._append_lock, translated(str(self._path)):
            if self._appender is None:
                self._appender = self._opened()
            self._appender.execute("BEGIN IMMEDIATE")
            try:
                yield self._appender
                self._appender.execute("COMMIT")
            except BaseException:
                if self._appender.in_transaction:
                    self._appender.execute("ROLLBACK")
                raise

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        """See Database.looking."""
        with self._look_lock, translated(str(self._path)):
            looker = self._look()
            looker.execute("BEGIN")
            try:
                yield looker
            finally:
                looker.execute("ROLLBACK")

    def version(self) -> int:
        """See Database.version."""
        with self._look_lock, translated(str(self._path)):
            return int(str(self._look().execute("PRAGMA data_version").fetchall()[0][0]))

    def wait(self, version: int, seconds: float) -> bool:
        """See Database.wait; any write is news."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._closing.wait(_POLL):
            if self.version() != version:
                return True
        return False

    def now(self, _connection: Connection) -> float:
        """See Database.now."""
        return time.clock_gettime(_CLOCK)

    def close(self) -> None:
        """Close them, and end a wait."""
        self._closing.set()
        with self._append_lock, self._look_lock:
            for connection in (self._appender, self._looker):
                if connection is not None:
                    connection.close()

    def _look(self) -> apsw.Connection:
        if self._looker is None:
            self._looker = self._opened()
        return self._looker

    def _opened(self) -> apsw.Connection:
        connection = connect(self._path)
        wait_for_others(connection)
        for pragma in ("synchronous=FULL", "secure_delete=ON", "wal_autocheckpoint=0"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        return connection
