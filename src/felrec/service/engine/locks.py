"""A lock for many readers and one writer; the writer has priority."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadWriteLock:
    """Readers share it; a writer waits for current readers, and new readers wait for the writer.

    Not reentrant: a reader must not acquire it again.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._writing = False
        self._waiting = 0  # writers

    @contextmanager
    def read(self) -> Iterator[None]:
        """Hold the lock together with other readers."""
        with self._changed:
            while self._writing or self._waiting:
                self._changed.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                if not self._readers:
                    self._changed.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        """Hold the lock exclusively."""
        with self._changed:
            self._waiting += 1
            while self._writing or self._readers:
                self._changed.wait()
            self._waiting -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
