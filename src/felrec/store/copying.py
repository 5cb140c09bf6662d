"""Copy a store to a new file: under another name until the copy is complete, and cleaned up after a kill."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from felrec.errors import StoreError
from felrec.store.file_locks import lock_beside

# Part of the name of an incomplete copy, before its extension: `find -name 'store-*.sqlite'` finds it like a backup.
UNFINISHED = ".unfinished-copy"
_COMPANIONS = ("-lease-journal", "-lease", "-journal", "-wal", "-shm")  # the longer of two endings first
_RUNNING = "{path} is being written by another backup; wait for it, or choose another name"


@contextmanager
def unfinished_copy(path: Path) -> Iterator[Path]:
    """The name under which a copy is written. It is removed at the end, or by the next backup into its directory."""
    if path.exists():
        raise StoreError(f"{path} exists; give the backup another name")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"{path}: there is no directory {path.parent}; create it, or choose another path")
    _remove_leftovers(path.absolute().parent)
    unfinished = path.with_name(f"{path.stem}{UNFINISHED}{path.suffix}")
    lock = lock_beside(unfinished, _RUNNING)
    try:
        make_private(unfinished)
        yield unfinished
    finally:
        _remove(unfinished)
        lock.close()


def copy_database(source: apsw.Connection, path: Path) -> None:
    """Copy a database as it is at this moment."""
    copy = apsw.Connection(str(path))
    try:
        with copy.backup("main", source, "main") as copying:
            copying.step(-1)  # in one step: a write in between would restart it
    finally:
        copy.close()


def make_private(path: Path) -> None:
    """Create a file that only its owner can read: it contains personal data. Its companion files inherit this."""
    with suppress(OSError):  # it exists already, or SQLite reports the problem
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _remove_leftovers(directory: Path) -> None:
    """Remove incomplete copies of processes that were killed: they may contain users who were erased since."""
    for left in {_main_file(file) for file in directory.glob(f"*{UNFINISHED}*")}:
        try:
            lock = lock_beside(left)
        except StoreError:  # it is being written now, or belongs to another user
            continue
        _remove(left)
        lock.close()


def _main_file(file: Path) -> Path:
    suffix = next((suffix for suffix in _COMPANIONS if file.name.endswith(suffix)), "")
    return file.with_name(file.name.removesuffix(suffix))


def _remove(path: Path) -> None:
    for suffix in ("", *_COMPANIONS):
        with suppress(OSError):
            path.with_name(f"{path.name}{suffix}").unlink()
