"""A witness beside the store: how many changes were acknowledged.

SQLite drops the end of a damaged write-ahead log without a word. The mark shows what was there. It is overwritten in
place after each commit, without a sync: it survives the death of the process. After a power cut it may be older than
the store, which hides a loss but never reports a false one.
"""

from __future__ import annotations

import logging
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

_log = logging.getLogger(__name__)
_HEAD, _SIZE = "felrec-mark", 128  # bytes: one write within one sector


class Mark(NamedTuple):
    """What a store had acknowledged."""

    store: str  # the id of the store, which its copies share
    changes: int
    events: int  # ever journalled


class MarkFile:
    """The mark of one store. Writing never raises: the change is already durable in the store."""

    def __init__(self, store: Path) -> None:
        self._store = store.resolve()
        self.path = self._store.with_name(f"{self._store.name}-mark")
        self._file: BinaryIO | None = None
        self._warned = False

    def read(self) -> Mark | None:
        """The mark, or None if there is none or it cannot be read."""
        try:
            text = self.path.read_bytes()[:_SIZE].decode("ascii", "replace").rstrip()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(error)
            return None
        fields, _, crc = text.rpartition(" ")
        head, *values = fields.split(" ")
        if head != _HEAD or len(values) != 3 or crc != _crc(fields):
            _log.warning("%s is damaged and was ignored", self.path)
            return None
        return Mark(values[0], int(values[1]), int(values[2]))

    def write(self, mark: Mark) -> None:
        """Overwrite the mark."""
        fields = f"{_HEAD} {mark.store} {mark.changes} {mark.events}"
        try:
            if self._file is None:
                self._file = self._opened()
            self._file.seek(0)
            self._file.write(f"{fields} {_crc(fields)}\n".ljust(_SIZE).encode())
        except OSError as error:
            self._warn(error)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> BinaryIO:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        with suppress(OSError, AttributeError):  # like SQLite: what root creates belongs to the owner of the store
            owner = self._store.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        return os.fdopen(descriptor, "r+b", buffering=0)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            _log.warning("%s: %s; a later loss of events might not be noticed", self.path, error.strerror)
        self._warned = True


def _crc(fields: str) -> str:
    return f"{zlib.crc32(fields.encode()):08x}"
