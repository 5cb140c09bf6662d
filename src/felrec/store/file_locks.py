"""The locks of the engine that writes to a store, or of several that share it, and a watch over the store's files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import apsw

from felrec.errors import StoreBusy, StoreError
from felrec.store.connecting import translated

if sys.platform == "linux":
    import fcntl

_Inode = tuple[int, int]  # device and number
_COMPANIONS = "-wal", "-shm"  # SQLite has them beside an open store
_A_GLANCE = 200  # milliseconds: longer than it takes to look whether somebody has the lock
_IN_USE = "{path} is in use by another engine; stop it first, or post events to it instead"


def lock_beside(path: Path, in_use: str = _IN_USE, *, shared: bool = False) -> apsw.Connection:
    """Lock `path`-lease until the connection is closed or the process ends. SQLite's locks work on every system."""
    try:
        with translated(str(path)):
            lock = apsw.Connection(f"{path}-lease")
            lock.set_busy_timeout(_A_GLANCE)
            lock.execute("BEGIN; SELECT count(*) FROM sqlite_schema" if shared else "BEGIN EXCLUSIVE").fetchall()
    except StoreBusy:
        raise StoreBusy(in_use.format(path=path)) from None
    return lock


class FileLocks:
    """Two locks: a file beside the store, and on Linux the file of the store itself.

    The second one belongs to the file and not to its name: it also holds if the first one is removed, or for a link.
    Processes that share a store exclude one that does not, and are excluded by it.
    """

    def __init__(self, path: Path, shared: bool = False) -> None:
        self._shared = shared
        self._named, self._file = path.absolute(), path.resolve()
        self._beside: apsw.Connection | None = None
        self._descriptor: int | None = None
        self._watched: dict[str, _Inode] = {}  # by path

    def lock_beside(self) -> None:
        """Lock the file beside the store; StoreBusy if another engine has."""
        if self._beside is None:
            self._beside = lock_beside(self._file, shared=self._shared)

    def lock_file(self) -> None:
        """Lock the store itself, which must exist, and watch it from now on; StoreBusy if another engine has it."""
        if sys.platform == "linux" and self._descriptor is None:
            descriptor = _opened(self._file)
            try:
                fcntl.flock(descriptor, (fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except OSError:
                # The descriptor stays open: closing it would drop the locks that SQLite has in this process.
                raise StoreBusy(_IN_USE.format(path=self._named)) from None
            self._descriptor = descriptor
        self._watched = {str(self._named): _inode(str(self._named))}

    def watch_companions(self) -> None:
        """Also watch the files that SQLite keeps beside an open store."""
        self._watched = {**self._watched, **{f"{self._file}{end}": _inode(f"{self._file}{end}") for end in _COMPANIONS}}

    def lost(self) -> str | None:
        """What happened to the store's files since they were opened, if anything. May be called from any thread."""
        for file, inode in self._watched.items():
            try:
                if _inode(file) != inode:
                    return f"{os.path.basename(file)} was replaced"
            except OSError:
                return f"{os.path.basename(file)} was removed"
        return None

    def moved(self) -> bool:
        """Whether the store's name belongs to another file now, or to none."""
        named = str(self._named)
        try:
            return named in self._watched and _inode(named) != self._watched[named]
        except OSError:
            return True

    def close(self) -> None:
        """Release both locks. Call it after SQLite has closed the file: closing ours drops the locks of SQLite's."""
        self._watched = {}
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._beside is not None:
            self._beside.close()
            self._beside = None


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR if os.access(path, os.W_OK) else os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}; check its permissions and those of its directory") from None


def _inode(path: str) -> _Inode:
    found = os.stat(path)
    return found.st_dev, found.st_ino
